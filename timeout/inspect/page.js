// The main part of the page, drawn anew as the server sends it. Without this script the page
// is the same, and stands still.
(function () {
  var main = document.querySelector("main[data-live]");
  if (!main || !window.EventSource) return;
  var status = document.getElementById("live");
  var events = new EventSource(location.pathname + location.search + (location.search ? "&" : "?") + "format=events");
  events.onopen = function () { status.textContent = "live"; };
  events.onerror = function () { status.textContent = "not connected"; };
  events.onmessage = function (e) {
    var at = document.activeElement;
    if (at && main.contains(at) && (at.tagName === "INPUT" || at.tagName === "SELECT")) return; // somebody types there
    var key = at && main.contains(at) ? at.getAttribute("href") : null;
    main.innerHTML = e.data;
    if (!key) return;
    Array.prototype.some.call(main.querySelectorAll("a"), function (a) {
      if (a.getAttribute("href") !== key) return false;
      a.focus();
      return true;
    });
  };
})();
