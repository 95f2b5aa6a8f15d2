import { Tabs } from "@mantine/core";
import type { ComponentType } from "react";
import type { Scope } from "#model/kinds.ts";
import { hasScope, useSession } from "../api/session.ts";
import { useUrlState } from "../state/url-state.ts";
import { Audit } from "./operations-page/audit.tsx";
import { Channels } from "./operations-page/channels.tsx";
import { Jobs } from "./operations-page/jobs.tsx";
import { Keys } from "./operations-page/keys.tsx";
import classes from "./operations-page/operations.module.css";
import { Privacy } from "./operations-page/privacy.tsx";
import { RoutingTest } from "./operations-page/routing-test.tsx";
import { Sessions } from "./operations-page/sessions.tsx";
import { Settings } from "./operations-page/settings.tsx";

interface Part {
  readonly name: string;
  readonly title: string;
  readonly scope: Scope;
  /** It is about the whole service: keys for some zones do not see it. */
  readonly isWhole: boolean;
  readonly part: ComponentType;
}

const PARTS: readonly Part[] = [
  { name: "channels", title: "Channels", scope: "read", isWhole: true, part: Channels },
  { name: "routing", title: "Routing", scope: "read", isWhole: true, part: RoutingTest },
  { name: "jobs", title: "Jobs", scope: "read", isWhole: true, part: Jobs },
  { name: "keys", title: "Keys", scope: "admin", isWhole: true, part: Keys },
  { name: "sessions", title: "Sessions", scope: "read", isWhole: false, part: Sessions },
  { name: "audit", title: "Audit", scope: "admin", isWhole: true, part: Audit },
  { name: "privacy", title: "Privacy", scope: "admin", isWhole: true, part: Privacy },
  { name: "settings", title: "Configuration", scope: "admin", isWhole: true, part: Settings },
];

/** The service itself: who is notified, what runs, who may do what, and what was done. */
export default function OperationsPage() {
  const session = useSession();
  const { params, change } = useUrlState();
  const parts = PARTS.filter(
    ({ scope, isWhole }) => hasScope(session, scope) && (!isWhole || session.zones === null),
  );
  const shown = parts.find(({ name }) => name === params.get("tab")) ?? parts[0];
  if (shown === undefined) return null;
  const { part: Shown } = shown;
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Operations</h1>
      <Tabs
        value={shown.name}
        keepMounted={false}
        onChange={(name) => change({ tab: name === parts[0]?.name ? null : name })}
      >
        <Tabs.List className={classes["tabs"]}>
          {parts.map(({ name, title }) => (
            <Tabs.Tab key={name} value={name}>
              {title}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={shown.name} className={classes["part"]}>
          <Shown />
        </Tabs.Panel>
      </Tabs>
    </div>
  );
}
