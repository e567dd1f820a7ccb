// Three things: Airflow's choice of light or dark, the reader's own zone before each time in UTC, and the way from
// inside Airflow's frame to a page of Airflow.
(function () {
  "use strict";

  function chosenTheme() {
    try {
      var outer = window.parent.document.documentElement;
      if (outer !== document.documentElement) {
        if (outer.classList.contains("dark")) return "dark";
        if (outer.classList.contains("light")) return "light";
      }
    } catch (refused) {
      return null;
    }
    return null;
  }

  function applyTheme() {
    var theme = chosenTheme();
    if (theme) document.documentElement.dataset.theme = theme;
  }

  function showLocalTimes() {
    var zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (zone === "UTC" || zone === "Etc/UTC") return;
    var format = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
    var named = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short", hour: "numeric" });
    document.querySelectorAll("time[datetime]").forEach(function (element) {
      var moment = new Date(element.getAttribute("datetime"));
      if (isNaN(moment)) return;
      var zoneName = named.formatToParts(moment).find(function (part) { return part.type === "timeZoneName"; });
      var local = document.createElement("span");
      local.className = "local";
      local.textContent = format.format(moment) + " " + (zoneName ? zoneName.value : zone);
      var utc = document.createElement("span");
      utc.className = "utc";
      utc.textContent = "(" + element.textContent + ")";
      element.replaceChildren(local, " ", utc);
    });
  }

  // The frame may not navigate its parent; a link of the parent's own document may.
  function leaveFrame(event) {
    var link = event.target.closest("a[data-outer]");
    if (!link || window.parent === window) return;
    try {
      var outer = window.parent.document.createElement("a");
      outer.href = link.href;
      window.parent.document.body.append(outer);
      outer.click();
      event.preventDefault();
    } catch (refused) {
      // Another site frames us: the link opens here.
    }
  }

  applyTheme();
  document.addEventListener("click", leaveFrame);
  try {
    new MutationObserver(applyTheme).observe(window.parent.document.documentElement, { attributeFilter: ["class"] });
  } catch (refused) {
    // Not inside Airflow's page: the browser's own choice stands.
  }
  document.addEventListener("DOMContentLoaded", showLocalTimes);
})();
