// Builds elements and changes them. What strangers wrote goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `h("td.number", { title: "…" }, "text", child)`. Functions are listeners, `true` has no value. */
export function h(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  return filled(document.createElement(tag), classes, attributes, children);
}

/** The same for what is drawn. */
export function s(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  return filled(document.createElementNS(SVG, tag), classes, attributes, children);
}

function filled(element, classes, attributes, children) {
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else put(element, name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Set an attribute if it differs; null and false remove it. */
export function put(element, name, value) {
  if (value === null || value === undefined || value === false) {
    element.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/** Set the text of an element if it differs: what did not change need not be drawn again. */
export function say(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** Show an element, or hide it. */
export function show(element, shown) {
  if (element.hidden === Boolean(shown)) element.hidden = !shown;
}

/**
 * Make the children of `parent` those of `items`, in their order. Children stay who they are as long as their key does,
 * so that focus, selection and what somebody types are kept.
 */
export function keyed(parent, items, keyOf, make, update = () => {}) {
  const before = parent.keyed ?? new Map();
  const after = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    if (after.has(key)) continue;
    const child = before.get(key) ?? make(item);
    after.set(key, child);
    update(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const [key, child] of before) if (!after.has(key)) child.remove();
  parent.keyed = after;
}

/** A part of a panel, with a heading of its own. `width` is how many sixths of the panel it takes. */
export function block(title, width, ...children) {
  return h(`section.block.w${width}`, {}, h("h3", {}, title), ...children);
}

let lastId = 0;

/** An id that nothing else has. */
export function newId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}
