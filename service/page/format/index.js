// Texts, numbers and times as every component shows them.
// Times are plant time with its zone; UTC is shown on hover.
const formats = new Map();
const zoneNames = new Map();

// Returns a text by its key, with {names} filled in; service/page/texts serves them as a script of their own.
export function text(key, values = {}) {
  const texts = window.alarmcastTexts;
  const chosen = values.count === 1 && `${key}.one` in texts ? `${key}.one` : key;
  if (!(chosen in texts)) throw new Error(`There is no text ${key}.`);
  return texts[chosen].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

function format(zone, options) {
  const key = zone + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat("en-GB", { timeZone: zone, ...options }));
  return formats.get(key);
}

// Returns the short name of a zone, "CET". Which names are known depends on the language.
function findZoneName(moment, zone) {
  let name = "";
  for (const language of ["en-GB", "en-US", "en-AU", "en-IN"]) {
    const parts = new Intl.DateTimeFormat(language, { timeZone: zone, timeZoneName: "short" }).formatToParts(new Date(moment));
    name = parts.find((part) => part.type === "timeZoneName").value;
    if (!/[+-]/.test(name)) break;
  }
  return name;
}

// Zones change at quarters of an hour only, so the name is cached per quarter.
export function zoneName(moment, zone) {
  const key = zone + Math.floor(new Date(moment) / 900000);
  if (!zoneNames.has(key)) zoneNames.set(key, findZoneName(moment, zone));
  return zoneNames.get(key);
}

export function plantTime(moment, zone) {
  const time = format(zone, { weekday: "short", day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit" }).format(new Date(moment));
  return `${time} ${zoneName(moment, zone)}`;
}

// With the year.
export function plantDate(moment, zone) {
  const time = format(zone, { day: "2-digit", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" }).format(new Date(moment));
  return `${time} ${zoneName(moment, zone)}`;
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
  if (minutes < 1) return text("common.ago.now");
  if (minutes < 60) return text("common.ago.minutes", { count: minutes });
  if (minutes < 2880) return text("common.ago.hours", { count: Math.floor(minutes / 60) });
  return text("common.ago.days", { count: Math.floor(minutes / 1440) });
}

export function percent(share) {
  if (share === null || share === undefined) return "–";
  return share > 0 && share < 0.005 ? text("common.percent.small") : text("common.percent", { value: Math.round(share * 100) });
}

// Returns how many times as likely as usual: "1.7×".
export function formatLift(lift) {
  if (lift === null || lift === undefined) return "";
  return text("common.lift", { value: lift >= 10 ? Math.round(lift) : lift.toFixed(1) });
}

// A sign for each severity, beside its colour.
const SEVERITY_SIGNS = { high: "▲", medium: "◆", low: "●" };

export function severitySign(severity) {
  return SEVERITY_SIGNS[severity] ?? "◆";
}

export function severityText(severity) {
  return severity in SEVERITY_SIGNS ? text(`common.severity.${severity}`) : severity;
}

const PRESENCES = {
  online: { sign: "●", tone: "ac-good" },
  stale: { sign: "◐", tone: "ac-bad-text" },
  silent: { sign: "◌", tone: "ac-bad-text" },
  offline: { sign: "✕", tone: "ac-bad-text" },
  never: { sign: "○", tone: "quiet" },
};

// Returns the sign, tone, label and explanation of a connection status.
export function presenceTag(presence) {
  return { ...PRESENCES[presence], label: text(`common.presence.${presence}`), help: text(`common.presence.${presence}.help`) };
}

// Returns the name of a machine with its site, unless the name contains the site.
export function machineTitle(machine) {
  return machine.name.toLowerCase().includes(machine.site.toLowerCase()) ? machine.name : `${machine.site} / ${machine.name}`;
}
