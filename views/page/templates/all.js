"use strict";
const list = document.getElementById("list");
const body = list.tBodies[0];
const rows = Array.from(body.rows);
const heads = Array.from(list.tHead.rows[0].cells);
const [find, kind, verdict, shown] = ["find", "kind", "verdict", "shown"].map((id) => document.getElementById(id));
const texts = rows.map((row) => row.textContent.toLowerCase());

function filter() {
  const wanted = find.value.trim().toLowerCase();
  let count = 0;
  rows.forEach((row, at) => {
    const fits = texts[at].includes(wanted)
      && (!kind.value || row.cells[1].textContent === kind.value)
      && (!verdict.value || row.cells[2].textContent === verdict.value);
    row.hidden = !fits;
    count += fits ? 1 : 0;
  });
  shown.textContent = count + " of " + rows.length;
}

function key(row, column) {
  const { dataset, textContent } = row.cells[column];
  return dataset.key === undefined ? textContent : Number(dataset.key);
}

function sort(column) {
  const head = heads[column];
  const down = head.getAttribute("aria-sort") === "ascending";
  heads.forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const keyed = rows.map((row) => [key(row, column), row]);
  keyed.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0) * (down ? -1 : 1));
  body.append(...keyed.map(([, row]) => row));
}

heads.forEach((head, column) => {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  button.addEventListener("click", () => sort(column));
  head.append(button);
});
[find, kind, verdict].forEach((control) => control.addEventListener("input", filter));
find.form.addEventListener("submit", (event) => event.preventDefault());
find.form.hidden = false;
filter();
