import { Button, Drawer } from "@mantine/core";
import { Link } from "wouter";
import { MINUTE_MS } from "#lib/units.ts";
import { FIELD_NAMES } from "#model/fields.ts";
import { useEventRevisions } from "../../api/event-revisions.ts";
import { decodeUrl, readRecord } from "../../api/record.ts";
import { type EventRow, type EventScope } from "../../api/search.ts";
import { useSession } from "../../api/session.ts";
import { ActionWord } from "../../components/action-word.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import { FilterValue } from "../../components/filter-value.tsx";
import { Payload } from "../../components/payload.tsx";
import { formatMoment, formatUtc, wordField } from "../../look/words.ts";
import { useRuleLink } from "../../state/rule-link.ts";
import { shareLink } from "../../state/share-link.ts";
import { useSpan } from "../../state/span.ts";
import { useZoneTitle } from "../../state/zones.ts";
import { toCurl } from "./copy-menu.tsx";
import { EventChanges } from "./event-changes.tsx";
import classes from "./explorer.module.css";

const AROUND_MS = 5 * MINUTE_MS;

interface Props {
  readonly event: EventRow | null;
  readonly scope: EventScope;
  readonly onClose: () => void;
}

/** One event: its fields, its decoded request, and its record as the platform sent it. */
export function EventDrawer({ event, scope, onClose }: Props) {
  return (
    <Drawer
      opened={event !== null}
      onClose={onClose}
      position="right"
      size="xl"
      title={event === null ? "" : `Event of ${formatMoment(event.timestamp, { seconds: true })}`}
      transitionProps={{ duration: 0 }}
    >
      {event === null ? null : <Content event={event} scope={scope} onClose={onClose} />}
    </Drawer>
  );
}

function Content({
  event,
  scope,
  onClose,
}: {
  readonly event: EventRow;
  readonly scope: EventScope;
  readonly onClose: () => void;
}) {
  const { publicUrl, maskedAddresses } = useSession();
  const { narrow } = useSpan();
  const zoneName = useZoneTitle();
  const ruleLink = useRuleLink();
  const revisions = useEventRevisions(event);
  const { timestamp, fields, log, logId, zoneId } = event;
  const record = readRecord(log);
  const decoded = decodeUrl(fields.url);
  // From the event itself to a few seconds later: a search that finds it first.
  const own = { fromMs: timestamp, toMs: timestamp + 1 };
  const mine = {
    ...scope,
    ...own,
    zones: scope.zones.filter(({ id }) => id === zoneId),
    filters: [],
    query: "",
  };
  return (
    <div className={classes["drawer"]} data-event={logId}>
      <div>
        <ActionWord action={fields.action} /> · {zoneName(zoneId)} · {formatUtc(timestamp)}
        <div className="lw-dim lw-mono lw-wrap">{logId}</div>
      </div>
      <div className={classes["buttons"]}>
        <CopyButton text={() => JSON.stringify(event, null, 2)}>JSON</CopyButton>
        <CopyButton text={() => toCurl(mine, publicUrl ?? globalThis.location.origin)}>curl</CopyButton>
        <CopyButton text={() => shareLink({ fromMs: timestamp - 1_000, toMs: timestamp + 1_000 })}>
          Link
        </CopyButton>
        <Button
          variant="default"
          onClick={() => {
            narrow(timestamp - AROUND_MS, timestamp + AROUND_MS);
            onClose();
          }}
        >
          Around this event (± 5 min)
        </Button>
        <Button variant="default" component={Link} href={ruleLink(zoneId, fields.rule)}>
          Its rule
        </Button>
      </div>
      <EventChanges query={revisions} />
      <section>
        <h3>Request</h3>
        <div className={classes["request"]}>
          <Payload text={fields.url} mark={record.matched} />
          {decoded === fields.url ? null : (
            <div>
              <span className="lw-dim">decoded </span>
              <Payload text={decoded} mark={record.matched} />
            </div>
          )}
          {record.body === "" ? null : (
            <div>
              <span className="lw-dim">body </span>
              <Payload text={record.body} mark={record.matched} />
            </div>
          )}
        </div>
      </section>
      {record.message === "" && record.matched === "" ? null : (
        <section>
          <h3>Why the rule matched</h3>
          <dl className={classes["fields"]}>
            <dt>message</dt>
            <dd>
              <Payload text={record.message} />
            </dd>
            <dt>matched {record.matchedIn}</dt>
            <dd>
              <Payload text={record.matched} mark={record.matched} />
            </dd>
          </dl>
        </section>
      )}
      <section>
        <h3>Fields</h3>
        <dl className={classes["fields"]}>
          {FIELD_NAMES.map((name) => (
            <Pair key={name} name={wordField(name)}>
              <FilterValue field={name} value={fields[name]} />
            </Pair>
          ))}
        </dl>
      </section>
      {record.headers.length === 0 ? null : (
        <section>
          <h3>Headers</h3>
          <dl className={classes["fields"]}>
            {record.headers.map(([name, value], index) => (
              <Pair key={`${index} ${name}`} name={<Payload text={name} />}>
                <Payload text={value} mark={record.matched} />
              </Pair>
            ))}
          </dl>
        </section>
      )}
      {record.others.length === 0 ? null : (
        <section>
          <h3>Labels</h3>
          <dl className={classes["fields"]}>
            {record.others.map(([name, value]) => (
              <Pair key={name} name={<Payload text={name} />}>
                <Payload text={value} />
              </Pair>
            ))}
          </dl>
        </section>
      )}
      <section>
        <h3>Record as the platform sent it</h3>
        {log === null ? (
          <p className="lw-dim">
            {maskedAddresses
              ? "Your key sees addresses masked, and no records."
              : "The record is not stored yet: the search shows an event before the list has its record. Open the event again in a few minutes."}
          </p>
        ) : (
          <pre className={classes["json"]} tabIndex={0} aria-label="Record as JSON">
            {JSON.stringify(log, null, 2)
              .split("\n")
              .map((line, index) => (
                <div key={`${index}`}>
                  <Payload text={line} />
                </div>
              ))}
          </pre>
        )}
      </section>
    </div>
  );
}

function Pair({ name, children }: { readonly name: React.ReactNode; readonly children: React.ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
