// Elements, and numbers as people read them. What strangers wrote goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `h("td.number", { title: "…" }, "text", child)`. Functions are listeners; null and false are left out. */
export function h(what, attributes = {}, ...children) {
  return filled(document.createElement(what.split(".")[0]), what, attributes, children);
}

/** The same for what is drawn. */
export function s(what, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, what.split(".")[0]), what, attributes, children);
}

function filled(element, what, attributes, children) {
  const classes = what.split(".").slice(1);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "style") element.style.cssText = value; // an attribute of that name would be inline style
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Make the children of an element those given; those that stay keep focus, selection and place. */
export function fill(parent, ...children) {
  const wanted = children.flat().filter(Boolean);
  wanted.forEach((child, place) => {
    if (parent.childNodes[place] !== child) parent.insertBefore(child, parent.childNodes[place] ?? null);
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

/** Set text if it differs: what has not changed keeps its selection. */
export function say(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function number(value) {
  if (typeof value !== "number") return "–";
  if (Number.isInteger(value)) return WHOLE.format(value);
  return Math.abs(value) >= 10 ? value.toFixed(1) : String(Number(value.toPrecision(3)));
}

/** For scales, where there is little room. */
export function short(value) {
  return Math.abs(value) >= 1000 ? COMPACT.format(value) : number(value);
}

export function duration(seconds) {
  if (typeof seconds !== "number") return "–";
  if (seconds > 0 && seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const [large, small, size, part] =
    seconds < 3600 ? ["min", "s", 60, 1] : seconds < 86_400 ? ["h", "min", 3600, 60] : ["d", "h", 86_400, 3600];
  const rest = Math.floor((seconds % size) / part);
  return `${Math.floor(seconds / size)} ${large}${rest ? ` ${rest} ${small}` : ""}`;
}

export function bytes(value) {
  if (typeof value !== "number") return "–";
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (value < 1024) return `${unit === "B" ? value : Number(value.toPrecision(3))} ${unit}`;
    value /= 1024;
  }
  return `${Number(value.toPrecision(3))} TB`;
}

/** The value of a fact by its kind. */
export function shown(kind, value) {
  if (kind === "seconds") return duration(value);
  if (kind === "bytes") return bytes(value);
  return typeof value === "string" ? value : number(value);
}

/** A time of day, with the day if it is another one. */
export function clock(wall) {
  const then = new Date(wall * 1000);
  const day = new Date().toDateString() === then.toDateString() ? "" : `${then.toLocaleDateString("en-GB")} `;
  return day + then.toLocaleTimeString("en-GB");
}

export function words(name) {
  return name.replaceAll("_", " ");
}
