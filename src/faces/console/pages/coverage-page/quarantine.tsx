import { useState } from "react";
import { many } from "#lib/format.ts";
import { type Item, useChange, useOperation, useOperationPages } from "../../api/ask.ts";
import { ActButton } from "../../components/buttons.tsx";
import { Moment, Rows } from "../../components/facts.tsx";
import { PagedPanel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { ProblemBox, QueryView } from "../../components/states.tsx";
import { useZones, useZoneTitle } from "../../state/zones.ts";
import { formatBytes } from "../../style/words.ts";

type Entry = Item<"quarantine.list">;

/** The entries of the platform that could not be stored. Nothing is shown without one. */
export function Quarantine() {
  const { asked, isShown } = useZones();
  const entries = useOperationPages(
    "quarantine.list",
    { zone: asked, limit: 10 },
    { refetchInterval: 60_000 },
  );
  const retry = useChange("quarantine.retry");
  const first = entries.data?.pages[0]?.items.filter(({ zoneId }) => isShown(zoneId));
  if (first?.length === 0 && retry.data === undefined) return null;
  const { stored, kept } = retry.data ?? { stored: 0, kept: 0 };
  return (
    <PagedPanel
      title="Quarantine"
      what="entries"
      about="entries of the platform that could not be stored"
      query={entries}
      actions={
        asked == null ? null : <ActButton word="Try all again" change={retry} input={{ zone: asked }} />
      }
      isShown={({ zoneId }) => isShown(zoneId)}
      none="No entry is in quarantine."
      before={
        <>
          <ProblemBox thrown={retry.error} />
          {retry.data === undefined ? null : (
            <div className="lw-hint lw-note" role="status">
              {many(stored, "entry", "entries")} stored, {kept} kept.
            </div>
          )}
        </>
      }
    >
      {(items) => <Rows of={items}>{(one) => <EntryRow key={one.id} entry={one} retry={retry} />}</Rows>}
    </PagedPanel>
  );
}

interface RowProps {
  readonly entry: Entry;
  readonly retry: ReturnType<typeof useChange<"quarantine.retry">>;
}

function EntryRow({ entry: { id, zoneId, receivedAt, route, day, reason, bytes, isHeld }, retry }: RowProps) {
  const zoneName = useZoneTitle();
  return (
    <li data-quarantined={id}>
      <div>
        <b>#{id}</b> {zoneName(zoneId)}
        <div className="lw-note">
          <Moment at={receivedAt} />, {day === null ? route : `${route} ${day}`}, {formatBytes(bytes)}:{" "}
          <Payload prose text={reason} />
        </div>
      </div>
      <ActButton word="Try again" label={`Try again: entry ${id}`} change={retry} input={{ ids: [id] }} />
      {isHeld ? <div className="lw-across lw-note">It waits for the pseudonym key.</div> : <Whole id={id} />}
    </li>
  );
}

/** The text of an entry, which is read when it is opened. */
function Whole({ id }: { readonly id: number }) {
  const [isOpen, setOpen] = useState(false);
  const entry = useOperation("quarantine.show", { id }, { enabled: isOpen });
  return (
    <details className="lw-across" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary className="lw-note">Text</summary>
      {isOpen ? (
        <QueryView query={entry} rows={2} asking="the entry">
          {({ text, isCut }) => (
            <>
              <Payload text={text ?? ""} none="Your key may not read records." />
              {isCut ? <div className="lw-note">The text goes on: longwatch quarantine show {id}</div> : null}
            </>
          )}
        </QueryView>
      ) : null}
    </details>
  );
}
