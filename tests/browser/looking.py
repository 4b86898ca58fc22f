"""What tests ask a browser about the page that it shows."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome

SHOTS = Path(__file__).parent.parent.parent / "build" / "screenshots"
"""Pictures for people; nothing compares them."""

WAIT = 20.0
"""Longer than anything takes that a test waits for, unless it never comes."""

_TALLEST = 6000

# Every visible text with its colour and that of the first ground below it.
_CONTRASTS = """
const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (colour) => {
  const [r, g, b] = colour.slice(0, 3).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = rgb(getComputedStyle(e).backgroundColor);
    if (colour.length < 4 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const found = [];
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  const text = walker.currentNode.data.trim();
  const isSeen = element.checkVisibility() && !element.closest(".unseen, script");
  if (!text || !isSeen) continue;
  const [a, b] = [light(rgb(getComputedStyle(element).color)), light(ground(element))];
  found.push([text, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]);
}
return found;
"""


@dataclass(frozen=True)
class Screen:
    """A kind of screen: its width in CSS pixels, and what its user likes."""

    name: str
    width: int
    dark: bool = False


DESK = Screen("desk", 1280)
DESK_DARK = Screen("desk-dark", 1280, dark=True)
PHONE = Screen("phone", 380)
PHONE_DARK = Screen("phone-dark", 380, dark=True)
SCREENS = (DESK, DESK_DARK, PHONE, PHONE_DARK)


def use(browser: Chrome, screen: Screen, height: int = 900) -> None:
    """Look at pages through this screen from now on."""
    scheme = {
        "name": "prefers-color-scheme",
        "value": "dark" if screen.dark else "light",
    }
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {
            "width": screen.width,
            "height": height,
            "deviceScaleFactor": 1,
            "mobile": screen.width < DESK.width // 2,
        },
    )


def photograph(browser: Chrome, screen: Screen, name: str) -> None:
    """Save a picture of the whole page."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    use(browser, screen)
    height = ask(browser, "return document.documentElement.scrollHeight")
    use(browser, screen, min(height, _TALLEST))
    browser.save_screenshot(str(SHOTS / f"{name}-{screen.name}.png"))
    use(browser, screen)


def ask(browser: Chrome, script: str, *values: object) -> Any:
    """Return what a script returns in the page."""
    return browser.execute_script(script, *values)


def text(browser: Chrome, selector: str) -> str:
    """Return the text of the first element that matches, empty if none is seen."""
    script = """
    const found = document.querySelector(arguments[0]);
    return found?.checkVisibility() ? found.innerText : "";
    """
    return str(ask(browser, script, selector))


def count(browser: Chrome, selector: str) -> int:
    """Return how many elements match."""
    script = "return document.querySelectorAll(arguments[0]).length"
    return int(ask(browser, script, selector))


def overflow(browser: Chrome) -> int:
    """Return by how many pixels the page is wider than the screen."""
    script = "const e = document.documentElement; return e.scrollWidth - e.clientWidth"
    return int(ask(browser, script))


def contrasts(browser: Chrome) -> list[tuple[str, float]]:
    """Return every text that is seen with the contrast to its ground (WCAG 2)."""
    return [(words, ratio) for words, ratio in ask(browser, _CONTRASTS)]


def requests(browser: Chrome) -> set[str]:
    """Return the origins of everything that the page has loaded."""
    script = """
    const all = [...performance.getEntriesByType("resource"),
                 ...performance.getEntriesByType("navigation")];
    return all.map((entry) => new URL(entry.name).origin);
    """
    return set(ask(browser, script))


def until(condition: Callable[[], object], what: str, seconds: float = WAIT) -> None:
    """Wait until the page shows something; fail when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.05)
