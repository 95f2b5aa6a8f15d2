import { Button } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { many } from "#lib/format.ts";
import type { FieldName } from "#model/fields.ts";
import type { AlertDetail } from "../../api/queries.ts";
import { useMay } from "../../api/session.ts";
import { Moment } from "../../components/facts.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { kindFor, toExplorerParams, toSpanParams } from "../../state/filters.ts";
import { usePageLink } from "../../state/url-state.ts";
import { formatCount } from "../../style/words.ts";
import classes from "./alert.module.css";
import { Act } from "./headline.tsx";
import { SilenceDialog } from "./silence-dialog.tsx";

type Attacker = AlertDetail["attackers"][number];

const FIELDS: Readonly<Record<Attacker["kind"], FieldName>> = {
  rules_per_ip: "address",
  ips_per_ja4: "ja4",
  ips_per_url: "path",
  ips_per_ua: "agent",
  ips_per_asn: "network",
};

/** Attackers of an incident. Each name opens the attacker's events. */
export function Attackers({ alert }: { readonly alert: AlertDetail }) {
  const [silenced, silence] = useState<Attacker | null>(null);
  const { attackers, unnamedAttackers } = alert;
  if (attackers.length === 0) return null;
  const active = attackers.filter(({ state }) => state === "active").length;
  const more = unnamedAttackers === 0 ? "" : `, and ${many(unnamedAttackers, "further attacker")}`;
  return (
    <Panel title="Who attacks" about={`${active} of ${attackers.length} active${more}`} flush>
      <table className={`lw-table ${classes["attackers"]}`}>
        <thead>
          <tr>
            <th>Attacker</th>
            <th>What it does</th>
            <th>Since</th>
            <th>Last seen</th>
            <th>State</th>
            <th>
              <span className="lw-unseen">Acts</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {attackers.map((one) => (
            <Row key={`${one.kind} ${one.key}`} alert={alert} one={one} onSilence={() => silence(one)} />
          ))}
        </tbody>
      </table>
      {silenced?.silence == null ? null : (
        <SilenceDialog alert={alert} choices={[silenced.silence]} onClose={() => silence(null)} />
      )}
    </Panel>
  );
}

interface RowProps {
  readonly alert: AlertDetail;
  readonly one: Attacker;
  readonly onSilence: () => void;
}

function Row({ alert: { id, state, zoneId }, one, onSilence }: RowProps) {
  const link = usePageLink();
  const mayAct = useMay("act");
  const { kind, key, role, startedAt, lastSeenAt, finding, silence } = one;
  const field = FIELDS[kind];
  // The source series count an IPv6 network of 64 bits as one address.
  const filter = { kind: key.endsWith("::/64") ? ("net" as const) : kindFor(field, key), field, value: key };
  const events = {
    filters: [filter],
    params: {
      ...toSpanParams(Date.parse(startedAt), Date.parse(lastSeenAt)),
      ...(zoneId === null ? {} : { zone: String(zoneId) }),
    },
  };
  return (
    <tr>
      <td className="lw-wrap">
        <Link href={link("/explorer", toExplorerParams(events))} title="See its events">
          <Payload text={key} />
        </Link>
        {role === "facet" ? <div className="lw-note">the same events as another attacker</div> : null}
      </td>
      <td className="lw-wrap">
        <Payload prose text={finding} />
      </td>
      <td>
        <span className={classes["phone"]}>since </span>
        <Moment at={startedAt} />
      </td>
      <td>
        <span className={classes["phone"]}>last seen </span>
        <Moment at={lastSeenAt} />
      </td>
      <td className={one.state === "active" ? "lw-fire" : "lw-dim"}>{one.state}</td>
      <td>
        {mayAct && silence !== null ? (
          <Button size="compact-xs" variant="default" onClick={onSilence}>
            Silence
          </Button>
        ) : null}{" "}
        {mayAct && state !== "resolved" && one.state === "active" ? (
          <Act id={id} act="resolve" word="Resolve" attacker={`${kind}=${key}`} />
        ) : null}
      </td>
    </tr>
  );
}

/** The rules that are part of the alert, with their own alerts, which notify no channel. */
export function MemberRules({ alert: { members, kind } }: { readonly alert: AlertDetail }) {
  const link = usePageLink();
  if (members.length === 0) return null;
  return (
    <Panel
      title={kind === "sources" ? "Rules that are part of it" : "Rules that match the same requests"}
      about="they notify no channel by themselves"
      flush
    >
      <ul className="lw-rows">
        {members.map(({ zoneId, ruleId, ruleTitle, severity, count, alertId }) => {
          const name = <Payload prose text={ruleId === "" ? "(none)" : ruleId} />;
          return (
            <li key={`${zoneId} ${ruleId}`}>
              <span>
                {alertId === null ? name : <Link href={link(`/alerts/${alertId}`)}>{name}</Link>} {ruleTitle}
              </span>
              <span className="lw-note">
                {formatCount(count)} events, {severity}
              </span>
            </li>
          );
        })}
      </ul>
    </Panel>
  );
}
