// Puts the page together: who may come in, what the server tells, and which parts show it.

import { Actions, Audit, toast } from "./actions.js";
import { Address } from "./address.js";
import { announce } from "./announce.js";
import { Api, Refusal } from "./api.js";
import { h, put, say, show } from "./dom.js";
import { Hosts } from "./hosts.js";
import { Items } from "./items.js";
import { Stream } from "./stream.js";
import { Systems, title } from "./systems.js";

const COMMANDS = ["sanderling demo sequence --out sequence", "sanderling events consume --demo"];
const STATES = { connecting: "Connecting", live: "Live", reconnecting: "Reconnecting", locked: "Locked" };

const find = (id) => document.getElementById(id);

const api = new Api();
const stream = new Stream(() => api.session());
const actions = new Actions(api);
const address = new Address();
const systems = new Systems({ tabs: find("tabs"), drawing: find("drawing"), panels: find("panels"), actions, api, address });
const hosts = new Hosts(find("hosts"), api, actions, address);
const items = new Items(find("items"), api, actions, address);
const audit = new Audit(find("audit"), api, actions);

let troubles = null; // what was wrong a moment ago; null before we know

function take(house) {
  const empty = house.systems.length === 0;
  say(find("home"), house.home);
  say(find("version"), house.version);
  document.title = `${house.home} – Sanderling`;
  show(find("place"), true);
  show(find("parts"), !empty);
  show(find("empty"), empty);
  show(find("house"), !empty);
  hosts.takeSystems(house.systems);
  items.show(systems.chosen);
  tellTroubles(house.systems);
}

/** Say what went wrong since, once. */
function tellTroubles(all) {
  const now = new Set(all.flatMap((system) => system.troubles.map((trouble) => `${title(system)}: ${trouble}`)));
  const fresh = troubles === null ? [] : [...now].filter((trouble) => !troubles.has(trouble));
  if (fresh.length) announce(fresh.length > 1 ? `${fresh[0]}, and ${fresh.length - 1} more` : fresh[0]);
  troubles = now;
}

function takeState() {
  const { state } = stream;
  put(find("state"), "data-state", state);
  say(find("state-text"), STATES[state]);
  const live = state === "live";
  show(find("logout"), live && api.hasSession);
  hosts.live = live;
  audit.live = live;
  items.live = live;
  if (live) audit.look();
  if (state === "locked") lock();
  else if (live) unlock();
  if (state === "reconnecting") announce("The server does not answer. Trying again.");
  if (live) announce("Live.");
}

/** Nothing is left to who is not in, not even what was shown before: a page that is loaded anew has none of it. */
function lock() {
  if (troubles !== null) {
    show(find("main"), false);
    location.reload();
    return;
  }
  show(find("login"), true);
  find("token").focus();
}

function unlock() {
  show(find("login"), false);
  find("token").value = "";
  say(find("login-refused"), "");
}

async function login(event) {
  event.preventDefault();
  const field = find("token");
  const button = event.submitter;
  if (button) button.disabled = true;
  try {
    await api.login(field.value.trim());
    await stream.connect();
    if (stream.state === "locked")
      say(find("login-refused"), "The token is right, but the browser kept no cookie for this page.");
  } catch (error) {
    say(find("login-refused"), error instanceof Refusal ? error.message : "The server does not answer.");
    field.select();
  } finally {
    if (button) button.disabled = false;
  }
}

async function logout() {
  try {
    await api.logout();
  } catch (error) {
    // Who is out already has what they wanted.
    if (!(error instanceof Refusal && error.status === 401)) {
      toast(error instanceof Refusal ? error.message : "The server does not answer.", { refused: true });
    }
  }
  stream.connect();
}

function command(text) {
  const copy = h("button.small", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    say(copy, "Copied");
  });
  // Only pages that are safe may: those of this machine, or by https.
  show(copy, Boolean(navigator.clipboard));
  return h("li", {}, h("code", {}, text), copy);
}

/** To a part of the page, without changing the address, which says what is shown. */
function jump(event) {
  const part = find(event.currentTarget.getAttribute("href").slice(1));
  event.preventDefault();
  part.scrollIntoView();
  part.focus({ preventScroll: true });
}

for (const link of document.querySelectorAll("a[href^='#']")) link.addEventListener("click", jump);
find("commands").append(...COMMANDS.map(command));
find("login-form").addEventListener("submit", login);
find("logout").addEventListener("click", logout);
api.addEventListener("out", () => stream.connect());
address.addEventListener("view", () => items.show(systems.chosen));
stream.addEventListener("state", takeState);
stream.addEventListener("house", ({ data }) => {
  systems.takeHouse(data);
  take(data);
});
stream.addEventListener("tick", ({ data }) => {
  systems.takeTick(data);
  take(data);
});
stream.connect();
