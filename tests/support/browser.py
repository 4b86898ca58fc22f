"""Drive the distribution's Chromium without a screen."""

import os
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from tests.support.programs import require

_ARGUMENTS = (
    "--headless=new",
    # The sandbox refuses root, and needs what containers deny. The tests' own pages
    # are all that is shown.
    "--no-sandbox",
    "--disable-dev-shm-usage",  # /dev/shm is small in containers
    "--disable-gpu",
    "--no-proxy-server",
    # A page that needs anything from elsewhere shows it here by failing.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--window-size=1280,900",
)


def chromium(folder: Path) -> Chrome:
    """Start a browser whose profile lies in a folder; its console log is kept."""
    options = ChromeOptions()
    options.binary_location = require("chromium")
    driver = require("chromedriver")
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={folder}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    log = os.fspath(folder / "chromedriver.log")
    return Chrome(options, ChromeService(driver, log_output=log))


def console_errors(driver: Chrome) -> list[str]:
    """Return what the page's console reports as errors since the last call."""
    entries = driver.get_log("browser")  # type: ignore[no-untyped-call]
    return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]
