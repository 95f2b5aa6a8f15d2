import { Button, Checkbox, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useRef, useState } from "react";
import { HOUR_MS } from "#lib/units.ts";
import { RUN_KINDS, type RunKind } from "#model/kinds.ts";
import { showIso } from "#model/run-span.ts";
import { useStartRun } from "../../api/coverage.ts";
import { useServerTime, useStatus } from "../../api/status.ts";
import { mistakeOf } from "../../components/mistake-of.ts";
import { PopoverForm } from "../../components/popover-form.tsx";
import { ProblemBox } from "../../components/states.tsx";
import { Icon } from "../../look/icons.tsx";
import { toUrlTime, useSpan } from "../../state/span.ts";
import { useZones, zoneTitle } from "../../state/zones.ts";
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
export function StartRun() {
  const [isOpen, setOpen] = useState(false);
  // A form that is opened again begins with the span of the page.
  return <StartForm key={String(isOpen)} isOpen={isOpen} onToggle={setOpen} />;
}

interface FormProps {
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
}

function StartForm({ isOpen, onToggle }: FormProps) {
  const { all, zones } = useZones();
  const span = useSpan();
  const start = useStartRun();
  const [kind, setKind] = useState<RunKind>("verify");
  const [zone, setZone] = useState(String(zones[0]?.id ?? ""));
  const [from, setFrom] = useState(() => toUrlTime(Math.floor(span.fromMs / HOUR_MS) * HOUR_MS));
  const serverTime = useServerTime();
  const [to, setTo] = useState(() => showIso(Math.min(span.toMs, serverTime() - 1_000)));
  const [ids, setIds] = useState(false);
  // Nobody is corrected while typing for the first time. After the first try, each change is judged at once.
  const [isTried, setTried] = useState(false);
  const fields = {
    zone: useRef<HTMLInputElement>(null),
    from: useRef<HTMLInputElement>(null),
    to: useRef<HTMLInputElement>(null),
  };
  const archived = useStatus().data?.archive.find(({ zoneId }) => String(zoneId) === zone) ?? null;
  const firstHour = all.find(({ id }) => String(id) === zone)?.firstHour;
  const wanted = { kind, from: from.trim(), to: to.trim() };
  const judge = () =>
    findRunFaults(wanted, {
      nowMs: serverTime(),
      firstHourMs: firstHour === undefined ? null : Date.parse(firstHour),
      archived,
    });
  const faults = isTried ? judge() : NO_FAULTS;
  const errorOf = (field: keyof RunFaults) => faults[field] ?? mistakeOf(start.error, field);
  const hasField = FIELDS.some((field) => mistakeOf(start.error, field) !== null);
  // The refusal was about what was typed before.
  const withdraw = () => start.error !== null && start.reset();
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
    >
      <SegmentedControl
        size="xs"
        fullWidth
        aria-label="What is started"
        data={RUN_KINDS.map((value) => ({ value, label: RUN_WORDS[value] }))}
        value={kind}
        onChange={(value) => {
          setKind(value);
          withdraw();
        }}
      />
      <div className="lw-note">{ABOUT[kind]}</div>
      <Select
        size="xs"
        label="Zone"
        allowDeselect={false}
        comboboxProps={{ withinPortal: false }}
        data={all.map((one) => ({ value: String(one.id), label: zoneTitle(one) }))}
        value={zone}
        ref={fields.zone}
        error={errorOf("zone")}
        onChange={(value) => {
          setZone(value ?? "");
          withdraw();
        }}
      />
      <TextInput
        size="xs"
        label="From"
        description="UTC, such as 2026-11-21T14:00:00Z"
        required
        value={from}
        ref={fields.from}
        error={errorOf("from")}
        onChange={(event) => {
          setFrom(event.currentTarget.value);
          withdraw();
        }}
      />
      <TextInput
        size="xs"
        label="To"
        required
        value={to}
        ref={fields.to}
        error={errorOf("to")}
        onChange={(event) => {
          setTo(event.currentTarget.value);
          withdraw();
        }}
      />
      {kind === "verify" ? (
        <Checkbox
          size="xs"
          label="Also compare three hours event by event"
          checked={ids}
          onChange={(event) => setIds(event.currentTarget.checked)}
        />
      ) : null}
      {start.error === null || hasField ? null : <ProblemBox thrown={start.error} />}
      <Button type="submit" size="xs" loading={start.isPending} disabled={zone === ""}>
        {RUN_WORDS[kind]}
      </Button>
    </PopoverForm>
  );
}
