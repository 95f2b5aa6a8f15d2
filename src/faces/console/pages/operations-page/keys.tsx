import { Button, Checkbox, PasswordInput, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { many } from "#lib/format.ts";
import { ROLES, type Role } from "#model/kinds.ts";
import { type Key, useCreateKey, useKeys, useRevokeKey } from "../../api/operations.ts";
import { toProblem } from "../../api/problem.ts";
import { Ago, Moment } from "../../components/ago.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import { mistakeOf } from "../../components/mistake-of.ts";
import { OlderEntries } from "../../components/older-entries.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { PopoverForm } from "../../components/popover-form.tsx";
import { Empty, ProblemBox, QueryView } from "../../components/states.tsx";
import { Icon } from "../../look/icons.tsx";
import { useUrlState } from "../../state/url-state.ts";
import { useZoneTitle } from "../../state/zones.ts";
import classes from "./operations.module.css";

const ROLE_WORDS: Readonly<Record<Role, string>> = {
  reader: "reader: sees",
  exporter: "exporter: sees and exports",
  operator: "operator: acts on alerts",
  admin: "admin: everything",
};

/** Every key; a new one is shown once. */
export function Keys() {
  const { params, change } = useUrlState();
  const isAll = params.get("dead") === "shown";
  const keys = useKeys(isAll);
  const items = keys.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Panel
      title="Keys"
      about={isAll ? "revoked and expired ones too" : "that work"}
      actions={
        <>
          <Button variant="default" onClick={() => change({ dead: isAll ? null : "shown" })}>
            {isAll ? "Hide dead keys" : "Show dead keys"}
          </Button>
          <NewKey />
        </>
      }
      flush
    >
      <QueryView query={keys} rows={4} asking="the keys">
        {() =>
          items.length === 0 ? (
            <Empty>There is no key.</Empty>
          ) : (
            <ul className="lw-rows">
              {items.map((key) => (
                <KeyRow key={key.id} item={key} ended={countEnded(items, key.id)} />
              ))}
            </ul>
          )
        }
      </QueryView>
      <OlderEntries query={keys} what="keys" />
    </Panel>
  );
}

/** How many listed keys are revoked with this one. */
function countEnded(items: readonly Key[], id: string): number {
  const children = items.filter((item) => item.isLive && item.endsWith === id);
  return children.reduce((sum, child) => sum + countEnded(items, child.id), children.length);
}

function KeyRow({ item, ended }: { readonly item: Key; readonly ended: number }) {
  const { id, name, roles, zones, masked, createdAt, expiresAt, revokedAt, lastUsedAt, isLive, endsWith } =
    item;
  const zoneName = useZoneTitle();
  const revoke = useRevokeKey();
  const [isAsking, setAsking] = useState(false);
  return (
    <li className={isLive ? undefined : "lw-dim"}>
      <div>
        <b>
          <Payload prose text={name} />
        </b>{" "}
        {roles.join(", ")} · {zones === null ? "every zone" : zones.map(zoneName).join(", ")}
        {masked ? " · addresses masked" : ""}
        <div className="lw-note">
          <span className="lw-mono">lw_{id}_…</span> · created <Moment at={createdAt} /> ·{" "}
          {lastUsedAt === null ? (
            "never used"
          ) : (
            <>
              used <Ago at={lastUsedAt} />
            </>
          )}
          {expiresAt === null ? null : (
            <>
              {" "}
              · expires <Ago at={expiresAt} />
            </>
          )}
          {endsWith === null ? null : (
            <>
              {" "}
              · ends with <span className="lw-mono">lw_{endsWith}_…</span>
            </>
          )}
          {revokedAt === null ? null : (
            <>
              {" "}
              · revoked <Ago at={revokedAt} />
            </>
          )}
        </div>
        {revoke.error === null ? null : <ProblemBox thrown={revoke.error} />}
      </div>
      {isLive ? (
        <div className={classes["acts"]}>
          {isAsking ? (
            <>
              <Button color="red" loading={revoke.isPending} onClick={() => revoke.mutate(id)}>
                {ended === 0
                  ? "Revoke for ever"
                  : `Revoke for ever, with ${many(ended, "key")} that end with it`}
              </Button>
              <Button variant="default" onClick={() => setAsking(false)}>
                Keep
              </Button>
            </>
          ) : (
            <Button variant="default" aria-label={`Revoke the key ${name}`} onClick={() => setAsking(true)}>
              Revoke
            </Button>
          )}
        </div>
      ) : null}
    </li>
  );
}

function NewKey() {
  const [isOpen, setOpen] = useState(false);
  return <KeyForm key={String(isOpen)} isOpen={isOpen} onToggle={setOpen} />;
}

interface FormProps {
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
}

/** The form keeps its values if the service refuses them. It shows the key once and stores it nowhere. */
function KeyForm({ isOpen, onToggle }: FormProps) {
  const create = useCreateKey();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("reader");
  const [zones, setZones] = useState("");
  const [expires, setExpires] = useState("");
  const [masked, setMasked] = useState(false);
  const [endsWithParent, setEnds] = useState(true);
  const [ownKey, setOwnKey] = useState("");
  const { data: made, error } = create;
  const ids = zones.split(/[\s,]+/).filter((text) => text !== "");
  const areZones = ids.every((text) => /^[1-9]\d{0,9}$/.test(text));
  const isOwnKeyWrong = error !== null && toProblem(error).status === 401;
  const hasField =
    isOwnKeyWrong || ["name", "role", "zones", "expires"].some((field) => mistakeOf(error, field) !== null);
  const submit = () => {
    if (made !== undefined) return onToggle(false);
    create.mutate({
      ownKey: ownKey.trim(),
      body: {
        name: name.trim(),
        role,
        masked,
        endsWithParent,
        zones: ids.length === 0 ? null : ids.map(Number),
        ...(expires.trim() === "" ? {} : { expires: expires.trim() }),
      },
    });
  };
  return (
    <PopoverForm
      word="New key"
      button={{ leftSection: <Icon name="plus" size={12} /> }}
      position="bottom-end"
      width={340}
      isKept={made !== undefined}
      isOpen={isOpen}
      onToggle={onToggle}
      onSubmit={submit}
    >
      {made === undefined ? (
        <>
          <TextInput
            size="xs"
            label="Name"
            required
            value={name}
            error={mistakeOf(error, "name")}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Select
            size="xs"
            label="Role"
            allowDeselect={false}
            comboboxProps={{ withinPortal: false }}
            data={ROLES.map((value) => ({ value, label: ROLE_WORDS[value] }))}
            value={role}
            error={mistakeOf(error, "role")}
            onChange={(value) => setRole(value ?? "reader")}
          />
          <TextInput
            size="xs"
            label="Zones"
            description="Numbers with commas. Empty means every zone."
            value={zones}
            error={areZones ? mistakeOf(error, "zones") : "must be numbers of zones"}
            onChange={(event) => setZones(event.currentTarget.value)}
          />
          <TextInput
            size="xs"
            label="Expires"
            description={`Such as 90d or never. Empty means ${role === "admin" ? "90d" : "never"}.`}
            value={expires}
            error={mistakeOf(error, "expires")}
            onChange={(event) => setExpires(event.currentTarget.value)}
          />
          <Checkbox
            size="xs"
            label="Masked: no raw record, no full address"
            checked={masked}
            onChange={(event) => setMasked(event.currentTarget.checked)}
          />
          <Checkbox
            size="xs"
            label="Ends with my key"
            description="It is revoked with your key, and lasts no longer."
            checked={endsWithParent}
            onChange={(event) => setEnds(event.currentTarget.checked)}
          />
          <PasswordInput
            size="xs"
            label="Your admin key again"
            description="A session alone creates no key. Without your key, use keys create in a terminal."
            required
            autoComplete="off"
            value={ownKey}
            error={isOwnKeyWrong ? toProblem(error).detail : null}
            onChange={(event) => setOwnKey(event.currentTarget.value)}
          />
          {error === null || hasField ? null : <ProblemBox thrown={error} />}
          <Button
            type="submit"
            size="xs"
            loading={create.isPending}
            disabled={name.trim() === "" || ownKey.trim() === "" || !areZones}
          >
            Create
          </Button>
        </>
      ) : (
        <>
          <div>
            The key <Payload prose text={made.name} /> is shown only now:
          </div>
          <code className="lw-wrap">{made.key}</code>
          <CopyButton text={() => made.key}>Copy</CopyButton>
          <Button type="submit" size="xs">
            Done
          </Button>
        </>
      )}
    </PopoverForm>
  );
}
