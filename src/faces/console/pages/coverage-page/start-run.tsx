import { Checkbox, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useRef, useState } from "react";
import { showIso } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { RUN_KINDS, type RunKind } from "#model/kinds.ts";
import { useStartRun } from "../../api/queries.ts";
import { PopoverForm, type Toggled } from "../../components/forms.tsx";
import { useFields } from "../../state/fields.ts";
import { useSpan } from "../../state/span.ts";
import { useServerTime, useStatus, useZones, zoneTitle } from "../../state/zones.ts";
import { Icon } from "../../style/icons.tsx";
import { findRunFaults, type RunFaults } from "./find-run-faults.ts";

const ABOUT: Readonly<Record<RunKind, string>> = {
  verify: "Compares the stored events with the platform and with themselves. It changes nothing.",
  backfill: "Reads the span again from the platform, at most the last 72 hours, and stores what is missing.",
  "verify-archive":
    "Reads every file of the archive days in the span, and compares it with its hash, its statement and the counts.",
};
export const RUN_WORDS: Readonly<Record<RunKind, string>> = {
  verify: "Verify",
  backfill: "Read again",
  "verify-archive": "Verify archive",
};
const FIELDS = ["zone", "from", "to"] as const;
const NO_FAULTS: RunFaults = { zone: null, from: null, to: null };

/** The span of the page is filled in. What was typed stays if it is refused, here or by the service. */
export function StartForm({ isOpen, onToggle }: Toggled) {
  const { all, zones } = useZones();
  const span = useSpan();
  const start = useStartRun();
  const serverTime = useServerTime();
  // The refusal was about what was typed before.
  const withdraw = () => start.error !== null && start.reset();
  const { values, text, choice, tick, isMistaken } = useFields(
    () => ({
      kind: "verify" as RunKind,
      zone: String(zones[0]?.id ?? ""),
      from: showIso(Math.floor(span.fromMs / HOUR_MS) * HOUR_MS),
      to: showIso(Math.min(span.toMs, serverTime() - 1_000)),
      ids: false,
    }),
    start.error,
    withdraw,
  );
  // Nobody is corrected while typing for the first time. After the first try, each change is judged at once.
  const [isTried, setTried] = useState(false);
  const fields = {
    zone: useRef<HTMLInputElement>(null),
    from: useRef<HTMLInputElement>(null),
    to: useRef<HTMLInputElement>(null),
  };
  const { kind, zone, ids } = values;
  const archived = useStatus().data?.archive.find(({ zoneId }) => String(zoneId) === zone) ?? null;
  const firstHour = all.find(({ id }) => String(id) === zone)?.firstHour;
  const wanted = { kind, from: values.from.trim(), to: values.to.trim() };
  const judge = () =>
    findRunFaults(wanted, {
      nowMs: serverTime(),
      firstHourMs: firstHour === undefined ? null : Date.parse(firstHour),
      archived,
    });
  const faults = isTried ? judge() : NO_FAULTS;
  const bind = (name: keyof RunFaults) => ({
    ref: fields[name],
    ...(faults[name] === null ? {} : { error: faults[name] }),
  });
  const submit = () => {
    setTried(true);
    withdraw();
    const found = judge();
    const wrong = FIELDS.find((field) => found[field] !== null);
    if (wrong !== undefined) return fields[wrong].current?.focus();
    start.mutate(
      { ...wanted, zone: Number(zone), ids: kind === "verify" && ids },
      { onSuccess: () => onToggle(false) },
    );
  };
  return (
    <PopoverForm
      word="Start"
      button={{ leftSection: <Icon name="play" size={12} /> }}
      position="bottom-end"
      width={320}
      isOpen={isOpen}
      onToggle={onToggle}
      onSubmit={submit}
      problem={isMistaken ? null : start.error}
      submit={{ word: RUN_WORDS[kind], loading: start.isPending, disabled: zone === "" }}
    >
      <SegmentedControl
        fullWidth
        aria-label="What is started"
        data={RUN_KINDS.map((value) => ({ value, label: RUN_WORDS[value] }))}
        {...choice("kind")}
      />
      <div className="lw-note">{ABOUT[kind]}</div>
      <Select
        label="Zone"
        data={all.map((one) => ({ value: String(one.id), label: zoneTitle(one) }))}
        {...choice("zone")}
        {...bind("zone")}
      />
      <TextInput
        label="From"
        description="UTC, such as 2026-11-21T14:00:00Z"
        required
        {...text("from")}
        {...bind("from")}
      />
      <TextInput label="To" required {...text("to")} {...bind("to")} />
      {kind === "verify" ? (
        <Checkbox label="Also compare three hours event by event" {...tick("ids")} />
      ) : null}
    </PopoverForm>
  );
}
