import { Button, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { type AuditEntry, useAudit } from "../../api/operations.ts";
import { Moment } from "../../components/ago.tsx";
import { OlderEntries } from "../../components/older-entries.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Empty, QueryView } from "../../components/states.tsx";
import { useSpan } from "../../state/span.ts";
import { useUrlState } from "../../state/url-state.ts";
import { useZones } from "../../state/zones.ts";
import { type DetailLine, describeDetails } from "./describe-details.ts";
import classes from "./operations.module.css";

/** Who did what. Filtered by the beginning of the action; the span is the header's if the reader wants that. */
export function Audit() {
  const { params, change } = useUrlState();
  const span = useSpan();
  const action = params.get("action") ?? "";
  const isAll = params.get("when") !== "span";
  const found = useAudit({
    ...(action === "" ? {} : { action }),
    ...(isAll ? {} : { since: Math.floor(span.fromMs), until: Math.ceil(span.toMs) }),
  });
  const [typed, setTyped] = useState(action);
  useEffect(() => setTyped(action), [action]);
  const entries = found.data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <Panel
      title="Audit trail"
      about={isAll ? "newest first" : "in the span of the header, newest first"}
      actions={
        <Button variant="default" onClick={() => change({ when: isAll ? "span" : null })}>
          {isAll ? "Only the span" : "Any time"}
        </Button>
      }
      flush
    >
      <form
        className={classes["question"]}
        onSubmit={(event) => {
          event.preventDefault();
          change({ action: typed.trim() === "" ? null : typed.trim() });
        }}
      >
        <TextInput
          size="xs"
          label="Action"
          description="key.created, or its beginning with a dot: key."
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
        <Button type="submit" size="xs" variant="default">
          Filter
        </Button>
      </form>
      <QueryView query={found} rows={8} asking="the audit trail">
        {() =>
          entries.length === 0 ? (
            <Empty
              action={
                action === "" && isAll ? null : (
                  <Button variant="default" onClick={() => change({ action: null, when: null })}>
                    Remove the filters
                  </Button>
                )
              }
            >
              No entry{action === "" && isAll ? "" : " with these filters"}.
            </Empty>
          ) : (
            <ul className="lw-rows">
              {entries.map((entry) => (
                <Entry key={entry.id} entry={entry} onPick={(picked) => change({ action: picked })} />
              ))}
            </ul>
          )
        }
      </QueryView>
      <OlderEntries query={found} what="entries" />
    </Panel>
  );
}

function Entry({
  entry: { at, actor, action, subject, details },
  onPick,
}: {
  readonly entry: AuditEntry;
  readonly onPick: (action: string) => void;
}) {
  return (
    <li className={classes["entry"]}>
      <div>
        <button type="button" className="lw-pick" onClick={() => onPick(action)}>
          <Payload prose text={action} />
        </button>{" "}
        <b>
          <Payload prose text={subject} />
        </b>{" "}
        by <Payload prose text={actor} />
        <Details of={details} />
      </div>
      <span className="lw-note">
        <Moment at={at} seconds />
      </span>
    </li>
  );
}

/** Short values follow each other: `role reader  zones 101, 102`. The lines of a nested value stand below its label. */
function Details({ of }: { readonly of: AuditEntry["details"] }) {
  const { all } = useZones();
  const lines = describeDetails(of, (zoneId) => all.find(({ id }) => id === zoneId)?.name ?? null);
  if (lines.length === 0) return null;
  return (
    <ul className={classes["details"]}>
      <Lines of={lines} />
    </ul>
  );
}

function Lines({ of }: { readonly of: readonly DetailLine[] }) {
  return of.map(({ label, text, atMs, lines }, index) => (
    // Two items of a list can be equal.
    <li key={`${index} ${label}`} data-nested={lines.length > 0 || undefined}>
      {label === "" ? null : (
        <span className={classes["label"]}>
          <Payload prose text={label} />
        </span>
      )}{" "}
      {lines.length === 0 ? (
        atMs === null ? (
          <Payload prose text={text} none="" />
        ) : (
          <Moment at={atMs} seconds />
        )
      ) : (
        <ul>
          <Lines of={lines} />
        </ul>
      )}
    </li>
  ));
}
