import { Button, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import type { EventScope } from "../../api/search.ts";
import { useMay } from "../../api/session.ts";
import { Payload } from "../../components/payload.tsx";
import { PopoverForm } from "../../components/popover-form.tsx";
import { Icon } from "../../look/icons.tsx";
import { DIMENSION_NAMES, DIMENSIONS, type Dimension, NO_VALUE } from "../../look/words.ts";
import {
  addFilter,
  type EventFilter,
  type FilterKind,
  isSameFilter,
  KIND_WORDS,
  toFilterParams,
} from "../../state/filters.ts";
import { useUrlState } from "../../state/url-state.ts";
import { CopyMenu } from "./copy-menu.tsx";
import classes from "./explorer.module.css";
import { ExportMenu } from "./export-menu.tsx";
import { ViewsMenu } from "./views-menu.tsx";

/** The search text, the filters, and what can be done with what they find. */
export function FilterBar({ scope }: { readonly scope: EventScope }) {
  const { change } = useUrlState();
  const mayExport = useMay("export");
  const { filters, query } = scope;
  const set = (next: readonly EventFilter[]) => change({ ...toFilterParams(next) });
  return (
    <div className={classes["bar"]}>
      <TextSearch query={query} onSearch={(text) => change({ q: text === "" ? null : text })} />
      {filters.map((filter) => (
        <Chip
          key={`${filter.kind} ${filter.field} ${filter.value}`}
          filter={filter}
          onTurn={() =>
            set(
              filters.map((one) =>
                isSameFilter(one, filter) ? { ...one, kind: one.kind === "not" ? "is" : "not" } : one,
              ),
            )
          }
          onRemove={() => set(filters.filter((one) => !isSameFilter(one, filter)))}
        />
      ))}
      <AddFilter onAdd={(filter) => set(addFilter(filters, filter))} />
      {filters.length + query.length > 0 ? (
        <Button variant="subtle" color="gray" onClick={() => change({ ...toFilterParams([]), q: null })}>
          Clear
        </Button>
      ) : null}
      <div className={classes["tools"]}>
        <ViewsMenu />
        {mayExport ? <ExportMenu scope={scope} /> : null}
        <CopyMenu scope={scope} />
      </div>
    </div>
  );
}

function TextSearch({
  query,
  onSearch,
}: {
  readonly query: string;
  readonly onSearch: (text: string) => void;
}) {
  const [text, setText] = useState(query);
  useEffect(() => setText(query), [query]);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onSearch(text.trim());
      }}
    >
      <TextInput
        size="xs"
        aria-label="Text in address, rule, path, user agent or message"
        placeholder="Text in address, path, user agent, message"
        value={text}
        leftSection={<Icon name="explorer" size={14} />}
        onChange={(event) => setText(event.currentTarget.value)}
      />
    </form>
  );
}

interface ChipProps {
  readonly filter: EventFilter;
  readonly onTurn: () => void;
  readonly onRemove: () => void;
}

function Chip({ filter: { kind, field, value }, onTurn, onRemove }: ChipProps) {
  const canTurn = kind === "is" || kind === "not";
  const name = `${DIMENSIONS[field]} ${KIND_WORDS[kind]} ${value === "" ? NO_VALUE : value}`;
  const text = (
    <>
      {DIMENSIONS[field]} <b>{KIND_WORDS[kind]}</b> <Payload text={value} none={NO_VALUE} />
    </>
  );
  return (
    <span className={classes["chip"]} data-kind={kind}>
      <button
        type="button"
        className={classes["turn"]}
        disabled={!canTurn}
        title={canTurn ? "Turn into the opposite" : name}
        onClick={onTurn}
      >
        <span>{text}</span>
      </button>
      <button type="button" aria-label={`Remove the filter ${name}`} onClick={onRemove}>
        <Icon name="close" size={12} />
      </button>
    </span>
  );
}

function AddFilter({ onAdd }: { readonly onAdd: (filter: EventFilter) => void }) {
  const [isOpen, setOpen] = useState(false);
  const [field, setField] = useState<Dimension>("ruleId");
  const [kind, setKind] = useState<FilterKind>("is");
  const [value, setValue] = useState("");
  const kinds = (Object.keys(KIND_WORDS) as FilterKind[]).filter((one) => one !== "net" || field === "ip");
  return (
    <PopoverForm
      word="Filter"
      button={{ leftSection: <Icon name="plus" size={12} /> }}
      width={320}
      isOpen={isOpen}
      onToggle={setOpen}
      onSubmit={() => {
        onAdd({ field, kind: kinds.includes(kind) ? kind : "is", value: value.trim() });
        setValue("");
        setOpen(false);
      }}
    >
      <Select
        size="xs"
        label="Dimension"
        allowDeselect={false}
        comboboxProps={{ withinPortal: false }}
        data={DIMENSION_NAMES.map((name) => ({ value: name, label: DIMENSIONS[name] }))}
        value={field}
        onChange={(name) => setField(name ?? "ruleId")}
      />
      <SegmentedControl
        size="xs"
        fullWidth
        aria-label="Kind of filter"
        data={kinds.map((one) => ({ value: one, label: KIND_WORDS[one] }))}
        value={kinds.includes(kind) ? kind : "is"}
        onChange={(one) => setKind(one)}
      />
      <TextInput
        size="xs"
        label="Value"
        description={
          kind === "like"
            ? "* stands for any text."
            : kind === "net"
              ? "For example 203.0.113.0/24."
              : "Empty means: no value."
        }
        value={value}
        onChange={(event) => setValue(event.currentTarget.value)}
      />
      <Button type="submit">Add filter</Button>
    </PopoverForm>
  );
}
