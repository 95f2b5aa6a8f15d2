import { Group, Slider, Stack, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { formatDuration, formatNumber } from "#lib/format.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { type Output, useOperation } from "../../api/ask.ts";
import type { RuleKey } from "../../api/queries.ts";
import { CopyButton } from "../../components/buttons.tsx";
import { Moment, Rows, Severity } from "../../components/facts.tsx";
import { Panel } from "../../components/panel.tsx";
import { QueryView } from "../../components/states.tsx";
import { useUrlState } from "../../state/url-state.ts";
import { formatCount } from "../../style/words.ts";
import classes from "./rule.module.css";

const DAYS = 30;
const SHOWN = 30;
/** Allowed values of a setting, and place of a number on its slider. */
interface Range {
  readonly least: number;
  readonly most: number;
  readonly toPosition: (value: number) => number;
  readonly fromPosition: (position: number) => number;
}
const Z: Range = {
  least: 1,
  most: 10,
  toPosition: (value) => value * 10,
  fromPosition: (position) => position / 10,
};
const FLOOR: Range = {
  least: 1,
  most: 1_000_000,
  toPosition: (value) => Math.log10(value) * 100,
  fromPosition: (position) => roundFloor(10 ** (position / 100)),
};

type Replayed = Output<"rules.replay">["after"]["alerts"][number];

/** Alerts that other settings would have raised over the stored history, and the lines that keep them. */
export function Tuning(key: RuleKey) {
  const { params, change } = useUrlState();
  const z = readNumber(params.get("z"), Z);
  const floor = readNumber(params.get("floor"), FLOOR);
  const isChanged = z !== null || floor !== null;
  // Null asks for the settings in force.
  const replay = useOperation("rules.replay", { ...key, z, floor, days: DAYS }, { staleTime: 60_000 });
  const inForce = replay.data?.before.settings;
  const set = (name: "z" | "floor", value: number) => {
    change({ [name]: inForce?.[name] === value ? null : String(value) }, { replace: true });
  };
  return (
    <Panel
      title="Try other settings"
      about={`over the stored counts of the last ${DAYS} days; nothing is changed, silences and routes do not count`}
    >
      <QueryView query={replay} rows={5} asking={`a replay of ${DAYS} days`}>
        {({ before, after, yaml }) => (
          <div className={classes["tuning"]}>
            <Stack gap={20}>
              <Knob
                label="z: score of a spike"
                about="How many deviations a count must lie above the expectation. A higher z means fewer alerts."
                inForce={before.settings.z}
                value={z ?? before.settings.z}
                range={Z}
                onChange={(value) => set("z", value)}
              />
              <Knob
                label="floor: fewest events of a spike"
                about="A count below the floor is never a spike. A higher floor means fewer alerts."
                inForce={before.settings.floor}
                value={floor ?? before.settings.floor}
                range={FLOOR}
                onChange={(value) => set("floor", value)}
              />
            </Stack>
            <div className={classes["result"]}>
              <Outcome before={before.alerts} after={after.alerts} isChanged={isChanged} />
            </div>
            {isChanged ? (
              <div>
                <Group gap={8} mb={6} justify="space-between">
                  <span className="lw-note">To keep it, put these lines into the configuration file:</span>
                  <CopyButton text={() => yaml}>Copy</CopyButton>
                </Group>
                <pre className="lw-code" tabIndex={0} aria-label="Lines of the configuration file">
                  {yaml}
                </pre>
              </div>
            ) : null}
          </div>
        )}
      </QueryView>
    </Panel>
  );
}

function readNumber(text: string | null, { least, most }: Range): number | null {
  if (text === null || !/^\d{1,7}(\.\d{1,3})?$/.test(text)) return null;
  const value = Number(text);
  return value >= least && value <= most ? value : null;
}

/** Two digits are precise enough for a floor that a finger moves. */
function roundFloor(value: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return Math.max(1, Math.round(value / step) * step);
}

interface KnobProps {
  readonly label: string;
  readonly about: string;
  readonly inForce: number;
  readonly value: number;
  readonly range: Range;
  readonly onChange: (value: number) => void;
}

/** A slider with a field for an exact number. The replay starts when the slider is let go, or with Enter. */
function Knob({ label, about, inForce, value, range, onChange }: KnobProps) {
  const { least, most, toPosition, fromPosition } = range;
  const [text, setText] = useState(String(value));
  useEffect(() => setText(String(value)), [value]);
  const typed = readNumber(text, range);
  const commit = () => {
    if (typed !== null && typed !== value) onChange(typed);
  };
  return (
    <Stack gap={8}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          commit();
        }}
      >
        <TextInput
          label={label}
          description={about}
          inputMode="decimal"
          value={text}
          error={typed === null ? `must be a number from ${least} to ${formatCount(most)}` : null}
          onChange={(event) => setText(event.currentTarget.value)}
          onBlur={commit}
        />
      </form>
      <Slider
        thumbLabel={label}
        label={(position) => formatNumber(fromPosition(position))}
        min={toPosition(least)}
        max={toPosition(most)}
        value={toPosition(typed ?? value)}
        onChange={(next) => setText(String(fromPosition(next)))}
        onChangeEnd={(next) => onChange(fromPosition(next))}
      />
      <div className="lw-note">
        in force: {formatNumber(inForce)}
        {value === inForce ? null : (
          <>
            {" · "}
            <button type="button" className="lw-pick" onClick={() => onChange(inForce)}>
              undo
            </button>
          </>
        )}
      </div>
    </Stack>
  );
}

interface OutcomeProps {
  readonly before: readonly Replayed[];
  readonly after: readonly Replayed[];
  readonly isChanged: boolean;
}

/** The number first, then each alert with what would have become of it. */
function Outcome({ before, after, isChanged }: OutcomeProps) {
  const dropped = before.filter((one) => !after.some((other) => isSameTime(one, other)));
  const rows = [
    ...after.map((alert) => {
      const isNew = !before.some((one) => isSameTime(one, alert));
      return { alert, fate: isNew ? "new" : "kept" } as const;
    }),
    ...dropped.map((alert) => ({ alert, fate: "not sent" }) as const),
  ].sort((one, other) => Date.parse(other.alert.from) - Date.parse(one.alert.from));
  return (
    <>
      <p className={classes["sentence"]} aria-live="polite">
        {isChanged ? (
          <>
            You would have been alerted <b>{times(after.length)}</b>
            {after.length === before.length ? ", as now" : ` instead of ${times(before.length)}`}.
          </>
        ) : (
          <>
            The settings in force alert <b>{times(after.length)}</b>. Move a slider to try others.
          </>
        )}
      </p>
      <Rows of={rows.slice(0, SHOWN)}>
        {({ alert, fate }) => (
          <li key={`${alert.from} ${fate}`} className={classes["replayed"]} data-fate={fate}>
            <span>
              <Moment at={alert.from} /> · active for{" "}
              {formatDuration(Date.parse(alert.to) - Date.parse(alert.from) + MINUTE_MS)}, peak{" "}
              {formatCount(alert.peak)}
            </span>
            <span>
              <Severity severity={alert.severity} />{" "}
              {isChanged ? <span className={classes["fate"]}>{fate}</span> : null}
            </span>
          </li>
        )}
      </Rows>
      {rows.length > SHOWN ? <div className="lw-hint">{rows.length - SHOWN} earlier ones.</div> : null}
    </>
  );
}

function isSameTime(one: Replayed, other: Replayed): boolean {
  return one.from <= other.to && other.from <= one.to;
}

function times(count: number): string {
  if (count === 0) return "never";
  return count === 1 ? "once" : `${formatCount(count)} times`;
}
