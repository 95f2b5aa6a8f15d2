import { Button } from "@mantine/core";
import { Link } from "wouter";
import {
  type Channel,
  type Delivery,
  useChannels,
  useDeadLetters,
  useReplay,
  useTestChannel,
} from "../../api/operations.ts";
import { useMay } from "../../api/session.ts";
import { Ago } from "../../components/ago.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Empty, ProblemBox, QueryView } from "../../components/states.tsx";
import { formatCount } from "../../look/words.ts";
import { usePageLink } from "../../state/url-state.ts";
import classes from "./operations.module.css";

const CIRCUITS: Readonly<Record<string, string>> = {
  closed: "delivers",
  open: "fails: it is tried again later",
  "half-open": "failed: one message is tried now",
  disabled: "disabled",
};

/** Every channel with its state, a test message, and the notifications that were given up. */
export function Channels() {
  const channels = useChannels();
  const dead = useDeadLetters();
  return (
    <>
      <Panel title="Channels" about="now" flush>
        <QueryView query={channels} rows={3} asking="the channels">
          {({ items }) => (
            <ul className="lw-rows">
              {items.map((channel) => (
                <ChannelRow key={channel.name} channel={channel} />
              ))}
            </ul>
          )}
        </QueryView>
      </Panel>
      <Panel title="Dead letters" about="notifications that were given up, the newest 100" flush>
        <QueryView query={dead} rows={2} asking="dead letters">
          {({ items }) =>
            items.length === 0 ? (
              <Empty>No notification was given up.</Empty>
            ) : (
              <ul className="lw-rows">
                {items.map((delivery) => (
                  <DeadRow key={delivery.id} delivery={delivery} />
                ))}
              </ul>
            )
          }
        </QueryView>
      </Panel>
    </>
  );
}

function ChannelRow({ channel }: { readonly channel: Channel }) {
  const { name, kind, isConfigured, circuit, waiting, dead, lastError, perMinute } = channel;
  const mayAct = useMay("act");
  const test = useTestChannel();
  const replay = useReplay();
  const isGood = circuit === "closed";
  return (
    <li>
      <div>
        <b>
          <Payload prose text={name} />
        </b>{" "}
        <span className="lw-dim">{isConfigured ? kind : "no longer configured"}</span>
        <div className="lw-note">
          <span className={isGood ? classes["good"] : "lw-warn"}>{CIRCUITS[circuit] ?? circuit}</span>
          {perMinute === null ? "" : ` · at most ${formatCount(perMinute)} a minute`}
          {waiting > 0 ? ` · ${formatCount(waiting)} waiting` : ""}
          {dead > 0 ? ` · ${formatCount(dead)} dead` : ""}
        </div>
        {lastError === null ? null : (
          <div className="lw-note">
            last failure: <Payload prose text={lastError} />
          </div>
        )}
        {test.data === undefined ? null : (
          <div role="status" className={test.data.isDelivered ? classes["good"] : "lw-warn"}>
            {test.data.isDelivered ? (
              "The test message was delivered."
            ) : (
              <>
                The test message was not delivered: <Payload prose text={test.data.text} none="" />
              </>
            )}
          </div>
        )}
        {replay.data === undefined ? null : (
          <div role="status">{formatCount(replay.data.replayed)} dead letters are sent again.</div>
        )}
        {[test.error, replay.error].map((error, index) =>
          error === null ? null : <ProblemBox key={`${index}`} thrown={error} />,
        )}
      </div>
      {mayAct ? (
        <div className={classes["acts"]}>
          {isConfigured ? (
            <Button
              variant="default"
              loading={test.isPending}
              aria-label={`Send a test message on ${name}`}
              onClick={() => test.mutate({ name })}
            >
              Send a test
            </Button>
          ) : null}
          {dead > 0 ? (
            <Button variant="default" loading={replay.isPending} onClick={() => replay.mutate({ name })}>
              Send {formatCount(dead)} dead again
            </Button>
          ) : null}
        </div>
      ) : null}
    </li>
  );
}

function DeadRow({ delivery }: { readonly delivery: Delivery }) {
  const { id, alertId, channel, reason, attempts, createdAt, lastError, headline } = delivery;
  const mayAct = useMay("act");
  const link = usePageLink();
  const replay = useReplay();
  return (
    <li>
      <div>
        <Link href={link(`/alerts/${alertId}`)}>
          <Payload prose text={headline ?? `alert ${alertId}`} />
        </Link>
        <div className="lw-note">
          <Payload prose text={channel} /> · {reason} · <Ago at={createdAt} /> · {attempts}{" "}
          {attempts === 1 ? "attempt" : "attempts"}
          {lastError === null ? null : (
            <>
              {" · "}
              <Payload prose text={lastError} />
            </>
          )}
        </div>
        {replay.error === null ? null : <ProblemBox thrown={replay.error} />}
      </div>
      {mayAct ? (
        <Button
          variant="default"
          loading={replay.isPending}
          aria-label={`Send notification ${id} again`}
          onClick={() => replay.mutate({ id })}
        >
          Send again
        </Button>
      ) : null}
    </li>
  );
}
