// How the page says numbers and times: one place, used by every component.
// Plant time is what people read, always with its zone; UTC stands behind it, on hover.
const formats = new Map();
let texts = null;

// A text of the page by its key, with {names} filled in; the texts stand in the page's head.
export function text(key, values = {}) {
  texts ??= JSON.parse(document.getElementById("alarmcast-texts").textContent);
  const chosen = values.count === 1 && `${key}.one` in texts ? `${key}.one` : key;
  if (!(chosen in texts)) throw new Error(`There is no text ${key}.`);
  return texts[chosen].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}


function format(zone, options) {
  const key = zone + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat("en-GB", { timeZone: zone, ...options }));
  return formats.get(key);
}

// A zone's short name, "CET"; which names are known depends on the language.
export function zoneName(moment, zone) {
  const at = new Date(moment);
  let name = "";
  for (const language of ["en-GB", "en-US", "en-AU", "en-IN"]) {
    name = new Intl.DateTimeFormat(language, { timeZone: zone, timeZoneName: "short" }).formatToParts(at).find((part) => part.type === "timeZoneName").value;
    if (!/[+-]/.test(name)) break;
  }
  return name;
}

const zoneNames = new Map();

// Zones change only at quarters of an hour, so a quarter has one name.
function named(moment, zone) {
  const key = zone + Math.floor(new Date(moment) / 900000);
  if (!zoneNames.has(key)) zoneNames.set(key, zoneName(moment, zone));
  return zoneNames.get(key);
}

export function plantTime(moment, zone) {
  const time = format(zone, { weekday: "short", day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit" }).format(new Date(moment));
  return `${time} ${named(moment, zone)}`;
}

// For what may be years ago or to come.
export function plantDate(moment, zone) {
  const time = format(zone, { day: "2-digit", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" }).format(new Date(moment));
  return `${time} ${named(moment, zone)}`;
}

// Without the zone, for axes and headings whose title names it.
export function plantClock(moment, zone) {
  return format(zone, { hour: "2-digit", minute: "2-digit" }).format(new Date(moment));
}

export function plantDay(moment, zone) {
  return format(zone, { weekday: "short", day: "2-digit", month: "short" }).format(new Date(moment));
}

export function utc(moment) {
  return new Date(moment).toISOString().replace("T", " ").slice(0, 19) + " UTC";
}

export function ago(moment, now) {
  const minutes = Math.max(0, Math.floor((new Date(now) - new Date(moment)) / 60000));
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 2880) return `${Math.floor(minutes / 60)} h ago`;
  return `${Math.floor(minutes / 1440)} days ago`;
}

export function percent(share) {
  if (share === null || share === undefined) return "–";
  return share > 0 && share < 0.005 ? "<1 %" : `${Math.round(share * 100)} %`;
}

export function times(lift) {
  if (lift === null || lift === undefined) return "";
  return lift >= 10 ? `×${Math.round(lift)}` : `×${lift.toFixed(1)}`;
}

// A sign for each severity, so that colour never speaks alone.
export const severitySigns = { high: "▲", medium: "◆", low: "●" };

// Whether a machine can be heard, with a sign and a tone.
export const presences = {
  online: { sign: "●", word: "online", tone: "ac-good" },
  stale: { sign: "◐", word: "stale", tone: "ac-bad-word" },
  silent: { sign: "◌", word: "silent", tone: "ac-bad-word" },
  offline: { sign: "✕", word: "offline", tone: "ac-bad-word" },
  never: { sign: "○", word: "never connected", tone: "quiet" },
};

// What a machine is called where machines of other sites are near: with its site, unless its name says it.
export function machineTitle(machine) {
  return machine.name.toLowerCase().includes(machine.site.toLowerCase()) ? machine.name : `${machine.site} / ${machine.name}`;
}
