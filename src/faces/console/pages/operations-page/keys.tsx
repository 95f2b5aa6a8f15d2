/** Keys and sessions. */
import { Checkbox, PasswordInput, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { useFields } from "#faces/console/components/forms.tsx";
import { many } from "#lib/format.ts";
import { ROLES, type Role } from "#model/kinds.ts";
import { type Input, type Item, useChange, useOperation, useOperationPages } from "../../api/ask.ts";
import { toProblem } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { ActButton, CopyButton, SubtleButton } from "../../components/buttons.tsx";
import { Ago, Moment, Rows } from "../../components/facts.tsx";
import { PopoverForm, type Toggled, ToggledForm } from "../../components/forms.tsx";
import { PagedPanel, QueryPanel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { ProblemBox } from "../../components/states.tsx";
import { useUrlState } from "../../state/url-state.ts";
import { useZoneTitle } from "../../state/zones.ts";
import { Icon } from "../../style/icons.tsx";

type Key = Item<"keys.list">;

const ROLE_WORDS: Readonly<Record<Role, string>> = {
  feed: "feed: fetches block lists",
  reader: "reader: sees",
  exporter: "exporter: sees and exports",
  operator: "operator: acts on alerts",
  admin: "admin: everything",
};

/** Every key; a new one is shown once. */
export function Keys() {
  const { params, change } = useUrlState();
  const all = params.get("dead") === "shown";
  return (
    <PagedPanel
      title="Keys"
      about={all ? "revoked and expired ones too" : "that work"}
      actions={
        <>
          <SubtleButton
            word={all ? "Hide dead keys" : "Show dead keys"}
            onClick={() => change({ dead: all ? null : "shown" })}
          />
          <ToggledForm form={KeyForm} />
        </>
      }
      query={useOperationPages("keys.list", { all, limit: 200 })}
      none="There is no key."
    >
      {(keys) => <Rows of={keys}>{(key) => <KeyRow key={key.id} item={key} all={keys} />}</Rows>}
    </PagedPanel>
  );
}

/** How many listed keys are revoked with this one. */
function countEnded(keys: readonly Key[], id: string): number {
  const children = keys.filter((key) => key.isLive && key.endsWith === id);
  return children.reduce((sum, child) => sum + countEnded(keys, child.id), children.length);
}

function KeyRow({ item, all }: { readonly item: Key; readonly all: readonly Key[] }) {
  const { id, name, roles, zones, masked, createdAt, expiresAt, revokedAt, lastUsedAt } = item;
  const zoneName = useZoneTitle();
  const revoke = useChange("keys.revoke");
  const [isAsking, setAsking] = useState(false);
  const ended = countEnded(all, id);
  return (
    <li className={item.isLive ? undefined : "lw-dim"}>
      <div>
        <Payload bold prose text={name} /> {roles.join(", ")} ·{" "}
        {zones === null ? "every zone" : zones.map(zoneName).join(", ")}
        {masked ? " · addresses masked" : ""}
        <div className="lw-note">
          <span className="lw-mono">lw_{id}_…</span> · created <Moment at={createdAt} /> ·{" "}
          {lastUsedAt === null ? "never used" : <Ago say="used " at={lastUsedAt} />}
          <Ago say=" · expires " at={expiresAt} />
          {item.endsWith === null ? null : (
            <>
              {" "}
              · ends with <span className="lw-mono">lw_{item.endsWith}_…</span>
            </>
          )}
          <Ago say=" · revoked " at={revokedAt} />
        </div>
        <ProblemBox thrown={revoke.error} />
      </div>
      <div className="lw-acts">
        {!item.isLive ? null : isAsking ? (
          <>
            <ActButton
              variant="filled"
              color="red"
              word={`Revoke for ever${ended === 0 ? "" : `, with ${many(ended, "key")} that end with it`}`}
              change={revoke}
              input={{ key: id }}
            />
            <SubtleButton word="Keep" onClick={() => setAsking(false)} />
          </>
        ) : (
          <SubtleButton word="Revoke" label={`Revoke the key ${name}`} onClick={() => setAsking(true)} />
        )}
      </div>
    </li>
  );
}

/** The admin's key, entered again: a session alone creates no key. */
type NewKey = Input<"keys.create"> & { readonly ownKey: string };

/** The form keeps its values if the service refuses them. It shows the key once and stores it nowhere. */
function KeyForm({ isOpen, onToggle }: Toggled) {
  const create = useChange<"keys.create", NewKey>("keys.create", ({ ownKey, ...body }) => [
    body,
    { headers: { accesskey: ownKey } },
  ]);
  const { data: made, error } = create;
  const { values, text, choice, tick, isMistaken } = useFields(
    {
      name: "",
      role: "reader" as Role,
      zones: "",
      expires: "",
      masked: false,
      endsWithParent: true,
      ownKey: "",
    },
    error,
  );
  const [name, expires, ownKey] = [values.name.trim(), values.expires.trim(), values.ownKey.trim()];
  const ids = values.zones.split(/[\s,]+/).filter((one) => one !== "");
  const areZones = ids.every((one) => /^[1-9]\d{0,9}$/.test(one));
  const isOwnKeyWrong = error !== null && toProblem(error).status === 401;
  const submit = () => {
    if (made !== undefined) return onToggle(false);
    const { role, masked, endsWithParent } = values;
    const zones = ids.length === 0 ? null : ids.map(Number);
    const common = { name, role, masked, endsWithParent, zones, ownKey };
    create.mutate({ ...common, ...(expires === "" ? {} : { expires }) });
  };
  const form = { isOpen, onToggle, onSubmit: submit, width: 340, position: "bottom-end" } as const;
  const button = { word: "New key", button: { leftSection: <Icon name="plus" size={12} /> } };
  if (made !== undefined)
    return (
      <PopoverForm {...form} {...button} isKept submit={{ word: "Done" }}>
        <div>
          The key <Payload prose text={made.name} /> is shown only now:
        </div>
        <code className="lw-wrap">{made.key}</code>
        <CopyButton text={() => made.key}>Copy</CopyButton>
      </PopoverForm>
    );
  return (
    <PopoverForm
      {...form}
      {...button}
      problem={isOwnKeyWrong || isMistaken ? null : error}
      submit={{
        word: "Create",
        loading: create.isPending,
        disabled: name === "" || ownKey === "" || !areZones,
      }}
    >
      <TextInput label="Name" required {...text("name")} />
      <Select
        label="Role"
        data={ROLES.map((value) => ({ value, label: ROLE_WORDS[value] }))}
        {...choice("role")}
      />
      <TextInput
        label="Zones"
        description="Numbers with commas. Empty means every zone."
        {...text("zones")}
        {...(areZones ? {} : { error: "must be numbers of zones" })}
      />
      <TextInput
        label="Expires"
        description={`Such as 90d or never. Empty means ${values.role === "admin" ? "90d" : "never"}.`}
        {...text("expires")}
      />
      <Checkbox label="Masked: no raw record, no full address" {...tick("masked")} />
      <Checkbox
        label="Ends with my key"
        description="It is revoked with your key, and lasts no longer."
        {...tick("endsWithParent")}
      />
      <PasswordInput
        size="xs"
        label="Your admin key again"
        description="A session alone creates no key. Without your key, use keys create in a terminal."
        required
        autoComplete="off"
        {...text("ownKey")}
        error={isOwnKeyWrong ? toProblem(error).detail : null}
      />
    </PopoverForm>
  );
}

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
