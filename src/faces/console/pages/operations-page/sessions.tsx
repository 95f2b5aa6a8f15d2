import { useChange, useOperation } from "../../api/ask.ts";
import { useMay } from "../../api/session.ts";
import { Ago } from "../../components/ago.tsx";
import { QueryPanel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { ActButton } from "../../components/quiet-button.tsx";
import { Rows } from "../../components/rows.tsx";
import { ProblemBox } from "../../components/states.tsx";

const NONE = "Nobody is signed in with a session. Requests with a key need none.";

/** People who are signed in. An admin sees every session, every other key its own. */
export function Sessions() {
  const sessions = useOperation("sessions.list", {});
  const isAdmin = useMay("admin");
  return (
    <QueryPanel title="Sessions" about={isAdmin ? "of every key" : "of this key"} query={sessions}>
      {({ items }) => (
        <Rows of={items} none={NONE}>
          {({ id, keyName, roles, userAgent, lastUsedAt, createdAt, expiresAt, isCurrent }) => (
            <li key={id}>
              <div>
                <Payload bold prose text={keyName} /> <span className="lw-dim">{roles.join(", ")}</span>
                {isCurrent ? " · this session" : ""}
                <div className="lw-note">
                  <Ago say="used " at={lastUsedAt} />
                  <Ago say=" · signed in " at={createdAt} />
                  <Ago say=" · ends " at={expiresAt} />
                  <Payload say=" · " prose text={userAgent} none="unknown browser" />
                </div>
              </div>
              {isCurrent ? null : <EndSession id={id} />}
            </li>
          )}
        </Rows>
      )}
    </QueryPanel>
  );
}

function EndSession({ id }: { readonly id: string }) {
  const end = useChange("sessions.end");
  return (
    <div>
      <ProblemBox thrown={end.error} />
      <ActButton scope="read" word="End" change={end} input={{ id }} />
    </div>
  );
}
