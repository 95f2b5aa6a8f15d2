import { ago } from "#lib/ago.ts";
import { toLine } from "#lib/plain-text.ts";
import { showSecond } from "#lib/show-time.ts";
import type { ReplicaState } from "#model/kinds.ts";
import type { StatusAnswer } from "#operations/service/status.ts";
import type { Paint, Style } from "#stages/delivery/channels/terminal/terminal-style.ts";
import { drawTable } from "../terminal/draw-table.ts";

/** How long an ended process is shown. The last process is always shown. */
const SHOWN_MS = 24 * 3_600_000;
const MAX_SHOWN = 50;

type Service = NonNullable<StatusAnswer["service"]>;

const STYLES: Readonly<Record<ReplicaState, Style>> = { alive: "green", stopped: "dim", silent: "red" };

/** One line that says whether the service runs, and a table of its processes. */
export function describeService(service: Service, paint: Paint): string {
  const { processes } = service;
  const shown = processes
    .filter(({ state, silentMs }, index) => index === 0 || state === "alive" || silentMs < SHOWN_MS)
    .slice(0, MAX_SHOWN);
  if (shown.length === 0) return paint("red", "Not running: no service has ever run on this database.");
  const head = ["PROCESS", "ROLES", "STATE", "LAST ALIVE", "SINCE (UTC)", "VERSION"];
  const table = drawTable(head, shown.map(toRow), paint);
  return `${describeLife(service, paint)}\n${table.trimEnd()}`;
}

function describeLife({ processes, roles, missingRoles }: Service, paint: Paint): string {
  const [last] = processes;
  const age = last === undefined ? "" : `${ago(last.silentMs)}, ${showSecond(last.lastAliveAt)} UTC`;
  if (missingRoles.length === 0) return `${paint("green", "Running")}: last alive ${age}`;
  if (roles.every(({ alive }) => alive === 0)) return `${paint("red", "Not running")}: last alive ${age}`;
  const missing = roles
    .filter(({ role }) => missingRoles.includes(role))
    .map(
      ({ role, silentMs }) =>
        `${role} (${silentMs === null ? "never alive" : `last alive ${ago(silentMs)}`})`,
    );
  return `${paint("red", "Running in part")}: no live process has ${missing.join(", ")}`;
}

function toRow({ host, pid, roles, state, silentMs, startedAt, version }: Service["processes"][number]) {
  return [
    `${toLine(host, 60)} ${pid}`,
    roles.map((role) => toLine(role, 20)).join(", "),
    { text: state, style: STYLES[state] },
    ago(silentMs),
    showSecond(startedAt),
    toLine(version, 30),
  ];
}
