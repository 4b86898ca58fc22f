/* The command: fabricmon with the interpreter linked into it.
 *
 * Nothing of the node's own Python is used: no PYTHON* variable, no site packages, no
 * search on PATH. The library lies beside the program, wherever that is.
 */
#define _GNU_SOURCE
#include <Python.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

/* The parts below are linked from objects made for a newer glibc than nodes have. With
 * these two stand-ins, which `--wrap` puts in their place, 2.34 is enough. */

#if defined(__x86_64__)
__asm__(".symver first_hypot,hypot@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver first_hypot,hypot@GLIBC_2.17");
#else
#error "say which version of glibc first had hypot on this architecture"
#endif
extern double first_hypot(double, double);

double __wrap_hypot(double x, double y) { return first_hypot(x, y); }

/* Expat seeds its hashes with it. glibc's own ends the program where there is no
 * randomness, and so does this. */
void __wrap_arc4random_buf(void *buffer, size_t length) {
  char *at = buffer;
  while (length > 0) {
    ssize_t got = getrandom(at, length, 0);
    if (got > 0) {
      at += got;
      length -= (size_t)got;
    } else if (got < 0 && errno != EINTR) {
      abort();
    }
  }
}

static const wchar_t *const COMMAND =
    L"import sys; sys.argv[0] = 'fabricmon'; "
    L"from fabricmon.cli import main; sys.exit(main())";

static void check(PyConfig *config, PyStatus status) {
  if (PyStatus_Exception(status)) {
    PyConfig_Clear(config);
    Py_ExitStatusException(status);
  }
}

static void add_path(PyConfig *config, const char *home, const char *part) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/lib/python%d.%d%s", home, PY_MAJOR_VERSION,
           PY_MINOR_VERSION, part);
  wchar_t *wide = Py_DecodeLocale(path, NULL);
  if (wide == NULL) abort();
  check(config, PyWideStringList_Append(&config->module_search_paths, wide));
  PyMem_RawFree(wide);
}

int main(int argc, char **argv) {
  char own[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
  if (length < 0) {
    perror("fabricmon: /proc/self/exe");
    return 1;
  }
  own[length] = '\0';
  const char *home = dirname(own);

  PyPreConfig before;
  PyPreConfig_InitIsolatedConfig(&before);
  before.utf8_mode = 1; /* services often have no locale */
  PyStatus status = Py_PreInitialize(&before);
  if (PyStatus_Exception(status)) Py_ExitStatusException(status);

  PyConfig config;
  PyConfig_InitIsolatedConfig(&config);
  config.parse_argv = 0;
  config.install_signal_handlers = 1; /* isolated leaves SIGINT and SIGPIPE alone */
  config.site_import = 0;
  config.write_bytecode = 0;
  config.module_search_paths_set = 1;
  add_path(&config, home, "");
  add_path(&config, home, "/lib-dynload");
  add_path(&config, home, "/site-packages");
  check(&config, PyConfig_SetBytesString(&config, &config.home, home));
  check(&config, PyConfig_SetString(&config, &config.run_command, COMMAND));
  check(&config, PyConfig_SetBytesArgv(&config, argc, argv));
  check(&config, Py_InitializeFromConfig(&config));
  PyConfig_Clear(&config);
  return Py_RunMain();
}
