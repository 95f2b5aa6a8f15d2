import { Button } from "@mantine/core";
import { useEndSession, useSessions } from "../../api/operations.ts";
import { useMay } from "../../api/session.ts";
import { Ago } from "../../components/ago.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Empty, ProblemBox, QueryView } from "../../components/states.tsx";

/** Who is signed in. An admin sees every session, every other key its own. */
export function Sessions() {
  const sessions = useSessions();
  const isAdmin = useMay("admin");
  const end = useEndSession();
  return (
    <Panel title="Sessions" about={isAdmin ? "of every key" : "of this key"} flush>
      {end.error === null ? null : <ProblemBox thrown={end.error} />}
      <QueryView query={sessions} rows={3} asking="the sessions">
        {({ items }) =>
          items.length === 0 ? (
            <Empty>Nobody is signed in with a session. Requests with a key need none.</Empty>
          ) : (
            <ul className="lw-rows">
              {items.map(({ id, keyName, roles, userAgent, lastUsedAt, createdAt, expiresAt, isCurrent }) => (
                <li key={id}>
                  <div>
                    <b>
                      <Payload prose text={keyName} />
                    </b>{" "}
                    <span className="lw-dim">{roles.join(", ")}</span>
                    {isCurrent ? " · this session" : ""}
                    <div className="lw-note">
                      used <Ago at={lastUsedAt} /> · signed in <Ago at={createdAt} /> · ends{" "}
                      <Ago at={expiresAt} /> · <Payload prose text={userAgent} none="unknown browser" />
                    </div>
                  </div>
                  {isCurrent ? null : (
                    <Button
                      variant="default"
                      loading={end.isPending && end.variables?.id === id}
                      onClick={() => end.mutate({ id })}
                    >
                      End
                    </Button>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </QueryView>
    </Panel>
  );
}
