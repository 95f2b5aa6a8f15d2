/** One event with its record and its changes. */
import { Drawer, Group, Stack } from "@mantine/core";
import { MINUTE_MS } from "#lib/units.ts";
import { FIELD_NAMES } from "#model/fields.ts";
import { type Output, useOperation } from "../../api/ask.ts";
import { decodeUrl, type EventRow, type EventScope, readRecord } from "../../api/search.ts";
import { useSession } from "../../api/session.ts";
import { CopyButton, SubtleButton } from "../../components/buttons.tsx";
import { ActionWord, Json, Moment, type Pair, Pairs } from "../../components/facts.tsx";
import { FilterValue, Payload } from "../../components/payload.tsx";
import { ProblemBox } from "../../components/states.tsx";
import { shareLink } from "../../state/browser.ts";
import { useSpan } from "../../state/span.ts";
import { useRuleLink } from "../../state/url-state.ts";
import { useZoneTitle } from "../../state/zones.ts";
import { formatMoment, formatUtc, wordField } from "../../style/words.ts";
import { toCurl } from "./filter-bar.tsx";

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
    >
      {event === null ? null : <Content event={event} scope={scope} onClose={onClose} />}
    </Drawer>
  );
}

function Content({ event, scope, onClose }: Props & { readonly event: EventRow }) {
  const { publicUrl, maskedAddresses } = useSession();
  const { narrow } = useSpan();
  const zoneName = useZoneTitle();
  const ruleLink = useRuleLink();
  const { timestamp, fields, log, logId, zoneId } = event;
  const { message, matched, matchedIn, body, headers, others } = readRecord(log);
  const decoded = decodeUrl(fields.url);
  // From the event itself to a moment later: a search that finds it first.
  const own = { fromMs: timestamp, toMs: timestamp + 1, filters: [], query: "" };
  const mine = { ...own, zones: scope.zones.filter(({ id }) => id === zoneId) };
  return (
    <Stack gap={16} data-event={logId}>
      <div>
        <ActionWord action={fields.action} /> · {zoneName(zoneId)} · {formatUtc(timestamp)}
        <div className="lw-dim lw-mono lw-wrap">{logId}</div>
      </div>
      <Group gap={6}>
        <CopyButton text={() => JSON.stringify(event, null, 2)}>JSON</CopyButton>
        <CopyButton text={() => toCurl(mine, publicUrl ?? globalThis.location.origin)}>curl</CopyButton>
        <CopyButton text={() => shareLink({ fromMs: timestamp - 1_000, toMs: timestamp + 1_000 })}>
          Link
        </CopyButton>
        <SubtleButton
          word="Around this event (± 5 min)"
          onClick={() => {
            narrow(timestamp - AROUND_MS, timestamp + AROUND_MS);
            onClose();
          }}
        />
        <SubtleButton word="Its rule" href={ruleLink(zoneId, fields.rule)} />
      </Group>
      <EventChanges event={event} />
      <section>
        <h3>Request</h3>
        <div className="lw-code">
          <Payload text={fields.url} mark={matched} />
          {Object.entries({ decoded: decoded === fields.url ? "" : decoded, body }).map(([what, text]) =>
            text === "" ? null : (
              <div key={what}>
                <span className="lw-dim">{what} </span>
                <Payload text={text} mark={matched} />
              </div>
            ),
          )}
        </div>
      </section>
      <Section
        title="Why the rule matched"
        pairs={
          message === "" && matched === ""
            ? []
            : [
                ["message", <Payload key="message" text={message} />],
                [`matched ${matchedIn}`, <Payload key="matched" text={matched} mark={matched} />],
              ]
        }
      />
      <Section
        title="Fields"
        pairs={FIELD_NAMES.map((name) => [
          wordField(name),
          <FilterValue key={name} field={name} value={fields[name]} />,
        ])}
      />
      <Section
        title="Headers"
        pairs={headers.map(([name, value]) => [
          <Payload key="name" text={name} />,
          <Payload key="value" text={value} mark={matched} />,
        ])}
      />
      <Section
        title="Labels"
        pairs={others.map(([name, value]) => [
          <Payload key="name" text={name} />,
          <Payload key="value" text={value} />,
        ])}
      />
      <section>
        <h3>Record as the platform sent it</h3>
        {log === null ? (
          <p className="lw-dim">
            {maskedAddresses
              ? "Your key sees addresses masked, and no records."
              : "The record is not stored yet: the search shows an event before the list has its record. Open the event again in a few minutes."}
          </p>
        ) : (
          <Json of={log} label="Record as JSON" />
        )}
      </section>
    </Stack>
  );
}

function Section({ title, pairs }: { readonly title: string; readonly pairs: readonly Pair[] }) {
  return pairs.length === 0 ? null : (
    <section>
      <h3>{title}</h3>
      <Pairs of={pairs} />
    </section>
  );
}

const LONGEST = 500;

/** Shows the values of an event that later looks at the platform changed. An event without changes shows nothing. */
function EventChanges({ event: { zoneId, logId, timestamp } }: { readonly event: EventRow }) {
  const query = useOperation(
    "events.revisions",
    { zone: zoneId, logId, at: timestamp },
    { placeholderData: () => undefined },
  );
  const { data, error } = query;
  if (error !== null) return <ProblemBox thrown={error} onRetry={() => void query.refetch()} />;
  if (data === undefined || (data.withdrawnSince === null && data.values.length === 0)) return null;
  return (
    <section data-changes>
      <h3>Changes on the platform</h3>
      {data.withdrawnSince === null ? null : (
        <p className="lw-warn">
          The platform no longer shows this event since <Moment at={data.withdrawnSince} seconds />.
        </p>
      )}
      <Pairs
        of={data.values.map((value) => [
          value.field === "message" ? value.field : wordField(value.field),
          <Change key={value.seenAt} value={value} />,
        ])}
      />
    </section>
  );
}

type RevisedValue = Output<"events.revisions">["values"][number];

function Change({ value: { before, after, route, seenAt, acceptedAt } }: { readonly value: RevisedValue }) {
  const [was, is] = acceptedAt === null ? ["stored ", "shown "] : ["formerly ", "now "];
  return (
    <>
      <div>
        <span className="lw-dim">{was}</span>
        <Payload text={cap(before)} />
      </div>
      <div>
        <span className="lw-dim">{is}</span>
        <Payload text={cap(after)} />
      </div>
      <div className="lw-dim">
        shown by the {route} since <Moment at={seenAt} seconds />
        {acceptedAt === null ? "; stored after a second look confirms it" : null}
        <Moment say=", stored " at={acceptedAt} seconds />
      </div>
    </>
  );
}

function cap(text: string | null): string {
  if (text === null || text.length <= LONGEST) return text ?? "";
  return `${text.slice(0, LONGEST)}…`;
}
