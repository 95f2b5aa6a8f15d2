import { Button } from "@mantine/core";
import { type Item, useOperationPages } from "../../api/ask.ts";
import { SubtleButton } from "../../components/buttons.tsx";
import { Moment, Rows } from "../../components/facts.tsx";
import { TextForm } from "../../components/forms.tsx";
import { PagedPanel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { useSpan } from "../../state/span.ts";
import { useUrlState } from "../../state/url-state.ts";
import { useZones } from "../../state/zones.ts";
import { type DetailLine, describeDetails } from "./describe-details.ts";
import classes from "./operations.module.css";

type AuditEntry = Item<"audit.list">;

/** Audit trail. Filtered by the beginning of the action; the span is the header's if the reader wants that. */
export function Audit() {
  const { params, change } = useUrlState();
  const { fromMs, toMs } = useSpan();
  const action = params.get("action") ?? "";
  const isAll = params.get("when") !== "span";
  const found = useOperationPages("audit.list", {
    action: action === "" ? null : action,
    since: isAll ? null : Math.floor(fromMs),
    until: isAll ? null : Math.ceil(toMs),
    limit: 100,
  });
  const isNarrow = action !== "" || !isAll;
  const pick = (picked: string) => change({ action: picked === "" ? null : picked });
  return (
    <PagedPanel
      title="Audit trail"
      about={isAll ? "newest first" : "in the span of the header, newest first"}
      actions={
        <SubtleButton
          word={isAll ? "Only the span" : "Any time"}
          onClick={() => change({ when: isAll ? "span" : null })}
        />
      }
      before={
        <TextForm
          className={classes["question"]}
          label="Action"
          description="key.created, or its beginning with a dot: key."
          text={action}
          onSubmit={pick}
        >
          <Button type="submit" size="xs" variant="default">
            Filter
          </Button>
        </TextForm>
      }
      query={found}
      what="entries"
      none={`No entry${isNarrow ? " with these filters" : ""}.`}
      noneAction={
        isNarrow ? (
          <SubtleButton word="Remove the filters" onClick={() => change({ action: null, when: null })} />
        ) : null
      }
    >
      {(entries) => <Rows of={entries}>{(one) => <Entry key={one.id} entry={one} onPick={pick} />}</Rows>}
    </PagedPanel>
  );
}

interface EntryProps {
  readonly entry: AuditEntry;
  readonly onPick: (action: string) => void;
}

function Entry({ entry: { at, actor, action, subject, details }, onPick }: EntryProps) {
  return (
    <li className={classes["entry"]}>
      <div>
        <button type="button" className="lw-pick" onClick={() => onPick(action)}>
          <Payload prose text={action} />
        </button>{" "}
        <Payload bold prose text={subject} /> by <Payload prose text={actor} />
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
      <span className="lw-dim">
        <Payload prose text={label} none="" />
      </span>{" "}
      {lines.length === 0 ? (
        <>
          <Moment at={atMs} seconds />
          <Payload prose text={atMs === null ? text : null} none="" />
        </>
      ) : (
        <ul>
          <Lines of={lines} />
        </ul>
      )}
    </li>
  ));
}
