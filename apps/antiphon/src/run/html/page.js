"use strict";
// Sorts a table by the column whose head is clicked: numbers first from the largest, text from A.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    const value = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
    button?.addEventListener("click", () => {
      const numbers = head.classList.contains("n");
      const before = head.getAttribute("aria-sort");
      const down = before === null ? numbers : before === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0];
      const compare = (a, b) =>
        numbers ? Number(value(a)) - Number(value(b)) : value(a).localeCompare(value(b));
      const rows = [...body.rows].sort((a, b) => (down ? compare(b, a) : compare(a, b)));
      body.append(...rows);
    });
  });
}
// Shows the histogram of the call site that is chosen.
const choice = document.getElementById("histogram-of");
if (choice) {
  const show = () => {
    for (const figure of document.querySelectorAll("figure.histogram"))
      figure.hidden = figure.dataset.of !== choice.value;
  };
  choice.addEventListener("change", show);
  choice.parentElement.hidden = false;
  show();
}
document.documentElement.dataset.script = "ran";
