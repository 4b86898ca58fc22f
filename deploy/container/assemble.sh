#!/bin/sh
# Lay out the image's root file system: the agent, ibstat, chown for folders on the
# host, and the parts of glibc that these need.
#
# usage: assemble.sh FOLDER PACKAGE      (as root on Debian; FOLDER must not exist)
set -eu

if [ $# -ne 2 ]; then
  echo "assemble.sh: one package is wanted, here are $(($# - 1)) in build/dist" >&2
  exit 1
fi
root=$1 package=$2
epoch=${SOURCE_DATE_EPOCH:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $(dpkg --print-architecture) in
amd64) triple=x86_64-linux-gnu loader=usr/lib64/ld-linux-x86-64.so.2 ;;
arm64) triple=aarch64-linux-gnu loader=usr/lib/ld-linux-aarch64.so.1 ;;
*) echo "assemble.sh: for amd64 and arm64 only" >&2 && exit 1 ;;
esac

fetch() {
  apt-get -qq update
  (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download \
    coreutils gcc-12-base infiniband-diags libc6 libgcc-s1 libibmad5 libibumad3)
  for file in "$work"/*.deb; do
    dpkg-deb -x "$file" "$work/debian"
    # Where scanners look for what an image without dpkg holds.
    dpkg-deb -f "$file" >"$root/var/lib/dpkg/status.d/$(dpkg-deb -f "$file" Package)"
  done
}

# Copy files, which some packages have without the usr/ before them; a link's target
# takes its name, since programs ask for that alone.
take() {
  for file; do
    source=$work/debian/$file
    [ -e "$source" ] || source=$work/debian/${file#usr/}
    mkdir -p "$root/$(dirname "$file")"
    cp -L "$source" "$root/$file"
  done
}

make_root() {
  mkdir -p "$root"/dev "$root"/etc/fabricmon "$root"/host "$root"/proc "$root"/sys \
    "$root"/run/fabricmon "$root"/tmp "$root"/usr/bin "$root"/usr/lib "$root"/usr/lib64 \
    "$root"/usr/sbin "$root"/var/lib/dpkg/status.d "$root"/var/lib/fabricmon
  for name in bin lib lib64 sbin; do ln -s "usr/$name" "$root/$name"; done
  chmod 1777 "$root/tmp"
  # The state folder is usable without a mount too; what is in it goes with the pod.
  chown 65534:65534 "$root/var/lib/fabricmon" "$root/run/fabricmon"
  echo "root:x:0:0:root:/:/sbin/nologin" >"$root/etc/passwd"
  echo "nobody:x:65534:65534:nobody:/:/sbin/nologin" >>"$root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
  echo "hosts: files dns" >"$root/etc/nsswitch.conf"
}

take_agent() {
  dpkg-deb -x "$package" "$work/agent"
  mkdir -p "$root/usr/share/doc"
  cp -R "$work/agent/usr/lib/fabricmon" "$root/usr/lib/"
  cp -P "$work/agent/usr/bin/fabricmon" "$root/usr/bin/"
  cp -R "$work/agent/usr/share/doc/fabricmon" "$root/usr/share/doc/"
  dpkg-deb -f "$package" >"$root/var/lib/dpkg/status.d/fabricmon"
  for name in coreutils gcc-12-base infiniband-diags libc6 libibmad5 libibumad3; do
    cp "$work/debian/usr/share/doc/$name/copyright" "$root/usr/share/doc/$name"
  done
}

make_root
fetch
take usr/sbin/ibstat usr/bin/chown "usr/lib/$triple/$(basename "$loader")"
ln -s "/usr/lib/$triple/$(basename "$loader")" "$root/$loader"
# Some of these are empty since glibc 2.34, but wheels still name them. glibc ends the
# process where a thread that outlives Python ends and there is no libgcc.
for library in libc.so.6 libgcc_s.so.1 libm.so.6 libdl.so.2 libpthread.so.0 \
  librt.so.1 libresolv.so.2 libibmad.so.5 libibumad.so.3; do
  take "usr/lib/$triple/$library"
done
take_agent
find "$root" -exec touch -h -d "@$epoch" {} +
