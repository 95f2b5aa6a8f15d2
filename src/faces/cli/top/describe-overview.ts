import { formatDecimal, formatWhole, showAge, showSecond } from "#lib/format.ts";
import { asCalled } from "#lib/process.ts";
import { toLine } from "#lib/text.ts";
import type { OverviewAnswer } from "#operations/service/overview.ts";
import type { Paint, Style } from "#stages/delivery/channels/terminal/terminal-style.ts";
import { drawSparkline } from "#stages/delivery/message/draw-sparkline.ts";
import { type Cell, drawTable } from "../terminal/print.ts";

const MINUTE_MS = 60_000;
/** The rate is that of so many whole minutes. */
const RATE_MINUTES = 5;
const TREND_COLUMNS = 12;
const MAX_ALERTS = 8;
const NEAR_LOSS_HOURS = 24;
const LATE_MS = 2 * MINUTE_MS;

/** Returns the lines of `longwatch top`. */
export function describeOverview(overview: OverviewAnswer, paint: Paint): string {
  const { now, zones, rules, attention, requestBudget } = overview;
  const none = zones.length === 0 ? asCalled("No data is stored yet: run npm start.\n") : "";
  return [
    `${paint("bold", "longwatch top")}   ${showSecond(now)} UTC   ${describeBudget(requestBudget)}\n`,
    none,
    zones.length === 0 ? "" : drawZones(overview, paint),
    drawAlerts(overview, paint),
    rules.length === 0 ? "" : drawRules(rules, paint),
    attention.length === 0
      ? ""
      : asCalled(`\n${paint("bold", "Needs attention")} (npm run -s longwatch -- status says more):\n`),
    attention.map(({ text }) => `  ${toLine(text, 300)}\n`).join(""),
  ]
    .filter((part) => part !== "")
    .join("");
}

function describeBudget(budget: OverviewAnswer["requestBudget"]): string {
  if (budget === null) return "requests: none yet";
  const { tokens, ratePerSecond, isPaused } = budget;
  return isPaused
    ? "requests: paused by the platform"
    : `requests: ${Math.floor(tokens)} left now, ${ratePerSecond}/s`;
}

const ZONE_HEAD = ["ZONE", "PER MIN", "LAST HOUR", "LAG", "TO LOSS", "ALERTS", "TREND"];

function drawZones({ now, from, to, zones }: OverviewAnswer, paint: Paint): string {
  const nowMs = Date.parse(now);
  const [fromMs, toMs] = [Date.parse(from), Date.parse(to)];
  const rows = zones.map((zone): Cell[] => {
    const counts = Array.from({ length: Math.round((toMs - fromMs) / MINUTE_MS) }, () => 0);
    for (const { startsAtMs, blocked, challenged, logged, other } of zone.points)
      counts[(startsAtMs - fromMs) / MINUTE_MS] = blocked + challenged + logged + other;
    const sum = (some: readonly number[]) => some.reduce((total, one) => total + one, 0);
    // The last minute has only begun.
    const perMinute = sum(counts.slice(-1 - RATE_MINUTES, -1)) / RATE_MINUTES;
    const lagMs = zone.searchedThrough === null ? null : nowMs - Date.parse(zone.searchedThrough);
    const { hoursToLoss, alertsFiring: firing } = zone;
    return [
      toLine(zone.name ?? String(zone.id), 14),
      showRate(perMinute),
      formatWhole(sum(counts)),
      lagMs === null ? "-" : warn(showAge(lagMs), lagMs > LATE_MS, "yellow"),
      hoursToLoss === null ? "-" : warn(`${hoursToLoss.toFixed(1)} h`, hoursToLoss < NEAR_LOSS_HOURS, "red"),
      warn(String(firing), firing > 0, "red"),
      drawSparkline(counts, TREND_COLUMNS),
    ];
  });
  return `\n${drawTable(ZONE_HEAD, rows, paint)}`;
}

function drawAlerts({ now, alerts }: OverviewAnswer, paint: Paint): string {
  const firing = alerts.filter(({ state }) => state === "firing");
  if (firing.length === 0) return `\nNo alert fires.\n`;
  const rows = firing
    .slice(0, MAX_ALERTS)
    .map(({ id, severity, firedAt, headline, silence }): Cell[] => [
      `#${id}`,
      warn(
        silence === null ? severity : `${severity}, silenced`,
        severity === "critical" || severity === "error",
        "red",
      ),
      showAge(Date.parse(now) - Date.parse(firedAt)),
      headline === null ? "(the stored message cannot be read)" : toLine(headline, 200),
    ]);
  const more = firing.length - rows.length;
  const rest = more > 0 ? asCalled(`${more} more: npm run -s longwatch -- alerts list\n`) : "";
  return `\n${drawTable(["FIRING", "SEVERITY", "AGE", "HEADLINE"], rows, paint)}${rest}`;
}

function drawRules(rules: OverviewAnswer["rules"], paint: Paint): string {
  const rows = rules.map(
    ({ zoneId, ruleId, title, perMinute, usualPerMinute, sparkline, openSpikeId }): Cell[] => [
      warn(toLine(ruleId, 20), openSpikeId !== null, "red"),
      String(zoneId),
      showRate(perMinute),
      usualPerMinute === null ? "-" : showRate(usualPerMinute),
      describeChange(perMinute, usualPerMinute),
      drawSparkline(sparkline, TREND_COLUMNS),
      toLine(title ?? "", 60),
    ],
  );
  return `\n${drawTable(["RULE", "ZONE", "PER MIN", "USUAL", "CHANGE", "TREND", "TITLE"], rows, paint)}`;
}

function describeChange(now: number, usual: number | null): string {
  if (usual === null) return "-";
  if (usual === 0) return "new";
  const factor = now / usual;
  return factor >= 10 ? `x${formatWhole(Math.round(factor))}` : `x${factor.toFixed(1)}`;
}

function showRate(perMinute: number): string {
  if (perMinute < 1) return formatDecimal(perMinute);
  return perMinute >= 10 ? formatWhole(Math.round(perMinute)) : perMinute.toFixed(1);
}

function warn(text: string, isBad: boolean, style: Style): Cell {
  return isBad ? { text, style } : text;
}
