import { Link } from "wouter";
import { many } from "#lib/format.ts";
import { type Item, useChange, useOperation } from "../../api/ask.ts";
import { ActButton } from "../../components/buttons.tsx";
import { Ago, Rows } from "../../components/facts.tsx";
import { Now, QueryPanel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { ProblemBox } from "../../components/states.tsx";
import { usePageLink } from "../../state/url-state.ts";
import { formatCount } from "../../style/words.ts";

const CIRCUITS: Readonly<Record<string, string>> = {
  closed: "delivers",
  open: "fails: it is tried again later",
  "half-open": "failed: one message is tried now",
  disabled: "disabled",
};

/** Every channel with its state, a test message, and the notifications that were given up. */
export function Channels() {
  const channels = useOperation("channels.list", {}, { refetchInterval: 15_000 });
  const dead = useOperation("deliveries.list", { state: "dead", limit: 100 }, { refetchInterval: 30_000 });
  return (
    <>
      <QueryPanel title="Channels" about={<Now />} query={channels}>
        {({ items }) => <Rows of={items}>{(one) => <ChannelRow key={one.name} channel={one} />}</Rows>}
      </QueryPanel>
      <QueryPanel title="Dead letters" about="notifications that were given up, the newest 100" query={dead}>
        {({ items }) => (
          <Rows of={items} none="No notification was given up.">
            {(one) => <DeadRow key={one.id} delivery={one} />}
          </Rows>
        )}
      </QueryPanel>
    </>
  );
}

function ChannelRow({ channel }: { readonly channel: Item<"channels.list"> }) {
  const { name, kind, isConfigured, circuit, waiting, dead, lastError, perMinute } = channel;
  const test = useChange("channels.test");
  const replay = useChange("channels.replay");
  return (
    <li>
      <div>
        <Payload bold prose text={name} />{" "}
        <span className="lw-dim">{isConfigured ? kind : "no longer configured"}</span>
        <div className="lw-note">
          <span className={circuit === "closed" ? "lw-good" : "lw-warn"}>{CIRCUITS[circuit] ?? circuit}</span>
          {perMinute === null ? "" : ` · at most ${formatCount(perMinute)} a minute`}
          {waiting > 0 ? ` · ${formatCount(waiting)} waiting` : ""}
          {dead > 0 ? ` · ${formatCount(dead)} dead` : ""}
        </div>
        <div className="lw-note">
          <Payload say="last failure: " prose text={lastError} />
        </div>
        {test.data === undefined ? null : (
          <div role="status" className={test.data.isDelivered ? "lw-good" : "lw-warn"}>
            The test message was {test.data.isDelivered ? "delivered." : "not delivered: "}
            <Payload prose text={test.data.isDelivered ? null : test.data.text} none="" />
          </div>
        )}
        {replay.data === undefined ? null : (
          <div role="status">{formatCount(replay.data.replayed)} dead letters are sent again.</div>
        )}
        <ProblemBox thrown={test.error} />
        <ProblemBox thrown={replay.error} />
      </div>
      <div className="lw-acts">
        {isConfigured ? (
          <ActButton
            word="Send a test"
            label={`Send a test message on ${name}`}
            change={test}
            input={{ name }}
          />
        ) : null}
        {dead > 0 ? (
          <ActButton word={`Send ${formatCount(dead)} dead again`} change={replay} input={{ name }} />
        ) : null}
      </div>
    </li>
  );
}

function DeadRow({ delivery }: { readonly delivery: Item<"deliveries.list"> }) {
  const { id, alertId, channel, reason, attempts, createdAt, lastError, headline } = delivery;
  const link = usePageLink();
  const replay = useChange("deliveries.replay");
  return (
    <li>
      <div>
        <Link href={link(`/alerts/${alertId}`)}>
          <Payload prose text={headline ?? `alert ${alertId}`} />
        </Link>
        <div className="lw-note">
          <Payload prose text={channel} /> · {reason} · <Ago at={createdAt} /> · {many(attempts, "attempt")}
          <Payload say=" · " prose text={lastError} />
        </div>
        <ProblemBox thrown={replay.error} />
      </div>
      <ActButton word="Send again" label={`Send notification ${id} again`} change={replay} input={{ id }} />
    </li>
  );
}
