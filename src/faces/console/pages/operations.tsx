/** The page of operations: jobs, settings and privacy. */

import { LISTS } from "virtual:operations";
import { Tabs } from "@mantine/core";
import type { ComponentType } from "react";
import { formatDuration } from "#lib/format.ts";
import { isObject } from "#lib/json.ts";
import type { Scope } from "#model/kinds.ts";
import { type Item, useOperation, useOperationPages } from "../api/ask.ts";
import { hasScope, useSession } from "../api/session.ts";
import { Ago, Fact, Json, Moment, Rows } from "../components/facts.tsx";
import { type Column, DataTable, PagedPanel, Panel, QueryPanel } from "../components/panel.tsx";
import { Payload } from "../components/payload.tsx";
import { QueryView } from "../components/states.tsx";
import { useUrlState } from "../state/url-state.ts";
import { useZoneTitle } from "../state/zones.ts";
import { formatCount } from "../style/words.ts";
import { Audit } from "./operations-page/audit.tsx";
import { Channels } from "./operations-page/channels.tsx";
import { Keys, Sessions } from "./operations-page/keys.tsx";
import classes from "./operations-page/operations.module.css";
import { RoutingTest } from "./operations-page/routing-test.tsx";

type Job = Item<"jobs.list">;

const COLUMNS: readonly Column<Job>[] = [
  { head: "job", cell: ({ job }) => job },
  {
    head: "last success",
    cell: ({ lastSuccessAt }) =>
      lastSuccessAt === null ? <span className="lw-dim">not here yet</span> : <Ago at={lastSuccessAt} />,
  },
  { head: "done", className: "lw-number", cell: ({ runs: { done = 0 } }) => formatCount(done) },
  { head: "failed", className: "lw-number", cell: Failed },
  { head: "mean", className: "lw-number lw-wide", cell: ({ meanSeconds }) => wordMean(meanSeconds) },
  {
    head: "last result",
    className: "lw-wide",
    cell: ({ tick }) => tick?.lastRun?.why ?? tick?.lastRun?.result,
  },
  {
    head: "next",
    className: "lw-wide",
    cell: ({ tick }) => (
      <span className={tick?.nextAt == null ? "lw-dim" : undefined} title={tick?.expression ?? undefined}>
        {tick?.nextAt == null ? (tick?.off ?? "when there is work") : <Ago at={tick.nextAt} />}
      </span>
    ),
  },
];

/** The background jobs: last success, duration, failures and next run of each. */
function Jobs() {
  const jobs = useOperation("jobs.list", {}, { refetchInterval: 15_000 });
  const about = "runs of the process that answers; schedule and last results of the whole installation";
  return (
    <QueryPanel title="Jobs" about={about} query={jobs}>
      {({ items }) => <DataTable rows={items} idOf={({ job }) => job} columns={COLUMNS} />}
    </QueryPanel>
  );
}

function Failed({ runs }: Job) {
  const others = Object.entries(runs).filter(([outcome]) => outcome !== "done");
  const failed = others.reduce((sum, [, count]) => sum + count, 0);
  if (failed === 0) return null;
  const outcomes = others.map(([outcome, count]) => `${outcome}: ${count}`);
  return (
    <span className="lw-warn" title={outcomes.join(", ")}>
      {formatCount(failed)}
    </span>
  );
}

function wordMean(seconds: number | null): string {
  if (seconds === null) return "";
  return seconds < 1 ? `${Math.round(seconds * 1_000)} ms` : formatDuration(seconds * 1_000);
}

/** How long data is kept, and what was erased. No erasure says which address it covers. */
function Privacy() {
  const privacy = useOperation("privacy.show", {});
  const zoneName = useZoneTitle();
  return (
    <QueryView query={privacy} rows={6} asking="retention and erasures">
      {({ retention: { rawDays, ipDays, eventDays, rollUpDays }, erasures }) => (
        <>
          <Panel title="Retention" about="days">
            <div className="lw-facts">
              <Fact say="raw records">{rawDays}</Fact>
              <Fact say="full addresses">{ipDays}</Fact>
              <Fact say="events">{eventDays}</Fact>
              <Fact say="counts">{rollUpDays}</Fact>
            </div>
          </Panel>
          <Panel title="Erasures" about="the newest 200; longwatch erase starts one" flush>
            <Rows of={erasures} none="No address was erased.">
              {({ id, requestedAt, untilAt, endedAt, zone, family, prefix, counts }) => (
                <li key={id}>
                  <div>
                    <b>Erasure {id}</b>, {family === 6 ? "IPv6" : "IPv4"}
                    {(family === 6 ? 128 : 32) === prefix ? " address" : ` network of prefix /${prefix}`} in{" "}
                    {zone === null ? "every zone" : zoneName(zone)}
                    <div className="lw-note">
                      requested <Ago at={requestedAt} />, covers events until <Moment at={untilAt} />
                      {Object.entries(counts)
                        .filter(([, count]) => count > 0)
                        .map(([name, count]) => `, ${formatCount(count)} ${name}`)
                        .join("")}
                    </div>
                  </div>
                  <span className={endedAt === null ? "lw-warn" : "lw-note"}>
                    {endedAt === null ? "runs" : <Ago at={endedAt} />}
                  </span>
                </li>
              )}
            </Rows>
          </Panel>
        </>
      )}
    </QueryView>
  );
}

/** The configuration as it is in force. A secret is never in the answer. */
function Settings() {
  const settings = useOperation("settings.show", {});
  return (
    <QueryView query={settings} rows={10} asking="the configuration">
      {({ variables, ...file }) => (
        <>
          <Panel title="Environment" about="of the process that answers; what is set stands first" flush>
            <DataTable
              rows={variables.toSorted((one, other) => Number(other.isSet) - Number(one.isSet))}
              idOf={({ name }) => name}
              columns={[
                { head: "variable", cell: ({ name }) => <span className="lw-mono">{name}</span> },
                {
                  head: "value",
                  cell: ({ value, isSet }) => (
                    <>
                      {value === "[secret]" ? (
                        <span aria-label="a secret">••••••••</span>
                      ) : (
                        <Payload text={value ?? ""} none="not set" />
                      )}
                      {isSet || value === null ? null : <span className="lw-dim"> default</span>}
                    </>
                  ),
                },
              ]}
            />
          </Panel>
          <Panel
            title="Configuration file"
            about="channels by name and kind, routes and detection as they apply"
          >
            <div className="lw-columns">
              {(["channels", "routing", "detection"] as const).map((name) => (
                <div key={name}>
                  <h3>{name}</h3>
                  <Json of={file[name]} label={name} />
                </div>
              ))}
            </div>
          </Panel>
        </>
      )}
    </QueryView>
  );
}

type Row = Readonly<Record<string, unknown>>;

/** The table of a list without a page of its own: a column for each member of its items that is no object. */
function OperationList({ name, title, about, members }: (typeof LISTS)[number]) {
  return (
    <PagedPanel title={title} about={about} query={useOperationPages(name, {})} none="The list is empty.">
      {(rows: readonly Row[]) => (
        <DataTable
          rows={rows}
          idOf={(row) => rows.indexOf(row)}
          columns={members
            .filter((member) => !rows.some(({ [member]: one }) => isObject(one)))
            .map((member, at) => ({
              head: member.replace(/(?:Ids?|At)$/, "").replace(/[A-Z]/g, (big) => ` ${big.toLowerCase()}`),
              className: at < NARROW ? "" : "lw-wide",
              cell: (row: Row) => <Cell member={member} value={row[member]} />,
            }))}
        />
      )}
    </PagedPanel>
  );
}

/** The columns that a telephone shows. */
const NARROW = 4;

function Cell({ member, value }: { readonly member: string; readonly value: unknown }) {
  const zoneName = useZoneTitle();
  if (Array.isArray(value))
    return value.map((one, at) => (
      <span key={`${at}`}>
        {at === 0 ? null : ", "}
        <Cell member={member} value={one} />
      </span>
    ));
  if (typeof value === "number") return /^zone(?:Ids?)?$/.test(member) ? zoneName(value) : formatCount(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "string") return null;
  return /^\d{4}-\d{2}-\d{2}T/.test(value) ? <Ago at={value} /> : <Payload prose text={value} />;
}

interface Part {
  readonly name: string;
  readonly title: string;
  readonly scope: Scope;
  /** It is about the whole service: keys for some zones do not see it. */
  readonly isWhole: boolean;
  readonly part: ComponentType;
}

const PARTS: readonly Part[] = [
  { name: "channels", title: "Channels", scope: "read", isWhole: true, part: Channels },
  { name: "routing", title: "Routing", scope: "read", isWhole: true, part: RoutingTest },
  { name: "jobs", title: "Jobs", scope: "read", isWhole: true, part: Jobs },
  { name: "keys", title: "Keys", scope: "admin", isWhole: true, part: Keys },
  { name: "sessions", title: "Sessions", scope: "read", isWhole: false, part: Sessions },
  { name: "audit", title: "Audit", scope: "admin", isWhole: true, part: Audit },
  { name: "privacy", title: "Privacy", scope: "admin", isWhole: true, part: Privacy },
  { name: "settings", title: "Configuration", scope: "admin", isWhole: true, part: Settings },
  ...LISTS.map((list) => ({ ...list, isWhole: false, part: () => <OperationList {...list} /> })),
];

/** The service itself: who is notified, what runs, who may do what, and what was done. */
export default function OperationsPage() {
  const session = useSession();
  const { params, change } = useUrlState();
  const parts = PARTS.filter(
    ({ scope, isWhole }) => hasScope(session, scope) && (!isWhole || session.zones === null),
  );
  const shown = parts.find(({ name }) => name === params.get("tab")) ?? parts[0];
  if (shown === undefined) return null;
  const { part: Shown } = shown;
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Operations</h1>
      <Tabs
        value={shown.name}
        keepMounted={false}
        onChange={(name) => change({ tab: name === parts[0]?.name ? null : name })}
      >
        <Tabs.List className={classes["tabs"]}>
          {parts.map(({ name, title }) => (
            <Tabs.Tab key={name} value={name}>
              {title}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={shown.name} className={classes["part"]}>
          <Shown />
        </Tabs.Panel>
      </Tabs>
    </div>
  );
}
