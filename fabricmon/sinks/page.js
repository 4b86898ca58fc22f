"use strict";
// Fetches what the agent renders and changes only what differs: text that is being
// selected, open details and the keyboard's place stay. Says when no answer comes.
(() => {
  const SECONDS = 2;
  const HIDDEN_SECONDS = 15;
  const PATIENCE_SECONDS = 5;
  const late = document.getElementById("late");
  const icon = document.getElementById("icon");
  const main = document.querySelector("main");
  const node = () => document.getElementById("node");
  let answered = Date.now();
  let timer = 0;

  const attributes = (old, fresh) => {
    for (const { name } of [...old.attributes]) {
      // Who opened a fold wants it open.
      if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
  };

  const isSame = (old, fresh) =>
    old.nodeName === fresh.nodeName && old.dataset?.key === fresh.dataset?.key;

  const sync = (old, fresh) => {
    if (old.isEqualNode(fresh)) return;
    if (!isSame(old, fresh)) {
      old.replaceWith(fresh);
    } else if (old.nodeType === Node.TEXT_NODE) {
      old.data = fresh.data;
    } else {
      attributes(old, fresh);
      const olds = [...old.childNodes];
      const news = [...fresh.childNodes];
      news.forEach((child, i) => {
        if (i < olds.length) sync(olds[i], child);
        else old.append(child);
      });
      olds.slice(news.length).forEach((child) => child.remove());
    }
  };

  const take = (html) => {
    const answer = new DOMParser().parseFromString(html, "text/html");
    const fresh = answer.getElementById("node");
    if (!fresh) throw new Error("not the agent's answer");
    if (fresh.dataset.revision !== node().dataset.revision) location.reload();
    sync(node(), fresh);
    document.title = fresh.dataset.title;
    const image = fresh.dataset.icon;
    if (icon.getAttribute("href") !== image) icon.href = image;
  };

  const complain = () => {
    const isLate = Date.now() - answered >= PATIENCE_SECONDS * 1000;
    late.hidden = !isLate;
    main.classList.toggle("late", isLate);
    if (!isLate) return;
    const time = `${new Date(answered).toISOString().slice(11, 19)}Z`;
    late.textContent = `The agent has not answered since ${time}. What follows is old.`;
    document.title = `no answer - ${main.querySelector("h1").textContent}`;
  };

  const refresh = async () => {
    clearTimeout(timer);
    try {
      const signal = AbortSignal.timeout(PATIENCE_SECONDS * 1000);
      const answer = await fetch("now", { signal, cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      take(await answer.text());
      answered = Date.now();
    } catch {
      // Said by complain().
    }
    complain();
    clearTimeout(timer);
    timer = setTimeout(refresh, (document.hidden ? HIDDEN_SECONDS : SECONDS) * 1000);
  };

  document.addEventListener("visibilitychange", () => document.hidden || refresh());
  timer = setTimeout(refresh, SECONDS * 1000);
})();
