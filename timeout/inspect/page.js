// The main part of the page, drawn anew as the server sends it. Without this script the page
// is the same, and stands still.
(function () {
  var main = document.querySelector("main[data-live]");
  if (!main || !window.EventSource) return;
  var status = document.getElementById("live");
  var say = function (text) { if (status.textContent !== text) status.textContent = text; };
  var each = function (selector, f) { Array.prototype.forEach.call(main.querySelectorAll(selector), f); };
  var events = new EventSource(location.pathname + location.search + (location.search ? "&" : "?") + "format=events");
  events.onopen = function () { say("Live"); };
  events.onerror = function () { say("Not connected: as of " + new Date().toLocaleTimeString()); };
  var down = false; // a click needs its target to stay
  main.addEventListener("pointerdown", function () { down = true; });
  ["pointerup", "pointercancel"].forEach(function (up) { window.addEventListener(up, function () { setTimeout(function () { down = false; }); }); });
  var keyOf = function (at) { return at.getAttribute("href") || at.getAttribute("name"); };
  events.onmessage = function (e) {
    if (down || !getSelection().isCollapsed) return; // or somebody marks what they want to copy
    var at = document.activeElement, key = at && main.contains(at) ? keyOf(at) : null;
    var scrolled = [];
    each(".wide", function (w) { scrolled.push(w.scrollLeft); });
    main.innerHTML = e.data;
    each(".wide", function (w, i) { w.scrollLeft = scrolled[i] || 0; });
    if (!key) return;
    Array.prototype.some.call(main.querySelectorAll("a, button"), function (a) {
      if (keyOf(a) !== key) return false;
      a.focus({ preventScroll: true });
      return true;
    });
  };
  window.addEventListener("pagehide", function () { events.close(); });
})();
