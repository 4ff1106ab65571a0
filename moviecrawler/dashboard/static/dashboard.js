// Refreshes the figures of the page that is open: asks for it again, and takes over the parts marked `data-live`.
// The page works without it.
"use strict";

(() => {
  const EVERY = 5000; // ms
  const SLOWEST = 60000;
  const WITHIN = 10000;
  const place = document.getElementById("refresh");
  const parts = () => [...document.querySelectorAll("[data-live]")];
  if (!place || !parts().length || !document.querySelector("main [data-live]")) return;

  let pause = EVERY;
  let timer = null;
  let on = sessionStorage.getItem("refresh") !== "off";

  const told = document.createElement("span");
  const button = document.createElement("button");
  button.type = "button";
  place.append(told, " ", button, " ");

  const show = (text) => {
    told.textContent = text;
    button.textContent = on ? "Stop" : "Refresh by itself";
  };

  // What somebody is at stays as it is.
  const inUse = (part) => {
    const selection = document.getSelection();
    const chosen = selection && !selection.isCollapsed && selection.containsNode(part, true);
    return chosen || (part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea"));
  };

  const takeOver = (part, fresh) => {
    if (part.innerHTML === fresh.innerHTML) return;
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const focusable = "a, button, summary, [tabindex]";
    const order = focused ? [...part.querySelectorAll(focusable)].indexOf(focused) : -1;
    const open = [...part.querySelectorAll("details")].map((details) => details.open);
    const scrolled = [...part.querySelectorAll(".scroll, .log")].map((box) => [box.scrollLeft, box.scrollTop]);
    part.replaceChildren(...fresh.childNodes);
    part.querySelectorAll("details").forEach((details, n) => { details.open = Boolean(open[n]); });
    part.querySelectorAll(".scroll, .log").forEach((box, n) => { if (scrolled[n]) [box.scrollLeft, box.scrollTop] = scrolled[n]; });
    if (order >= 0) part.querySelectorAll(focusable)[order]?.focus({ preventScroll: true });
  };

  const refresh = async () => {
    // Without the name and password that the address may have been opened with, which a request may not hold.
    const address = new URL(location.pathname + location.search, location.origin);
    address.searchParams.delete("notice");
    const answer = await fetch(address, { cache: "no-store", redirect: "error", signal: AbortSignal.timeout(WITHIN) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts()) {
      const fresh = page.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
      if (fresh && !inUse(part)) takeOver(part, document.importNode(fresh, true));
    }
  };

  const tick = async () => {
    timer = null;
    if (!on || document.hidden) return;
    try {
      await refresh();
      pause = EVERY;
      show("It refreshes by itself.");
    } catch (error) {
      pause = Math.min(2 * pause, SLOWEST);
      show(`It could not be refreshed (${error.message}); these figures are old.`);
    }
    plan();
  };

  const plan = () => {
    if (timer === null && on && !document.hidden) timer = setTimeout(tick, pause);
  };

  button.addEventListener("click", () => {
    on = !on;
    sessionStorage.setItem("refresh", on ? "on" : "off");
    show(on ? "It refreshes by itself." : "It does not refresh.");
    if (on) { tick(); } else if (timer !== null) { clearTimeout(timer); timer = null; }
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && timer === null) tick(); });
  show(on ? "It refreshes by itself." : "It does not refresh.");
  plan();
})();
