/** The header: the zones, the span and the search. */
import {
  ActionIcon,
  Button,
  Kbd,
  Menu,
  Popover,
  SegmentedControl,
  Select,
  Stack,
  TextInput,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";
import { useColorScheme } from "@mantine/hooks";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { useFields } from "#faces/console/components/forms.tsx";
import { ask } from "../api/ask.ts";
import { useSession, useSignOut } from "../api/session.ts";
import { SubtleButton } from "../components/buttons.tsx";
import { TextForm } from "../components/forms.tsx";
import { useDesktopNotices } from "../state/browser.ts";
import { useLive } from "../state/now.tsx";
import { SPANS, type SpanName, useSpan } from "../state/span.ts";
import { type Params, usePageLink, useUrlState } from "../state/url-state.ts";
import { useIsDown, useStatus, useZones, zoneTitle } from "../state/zones.ts";
import { Icon, Logo } from "../style/icons.tsx";
import { formatMoment, formatUtc, isInUtc, parseMoment, switchZone } from "../style/words.ts";
import classes from "./header.module.css";

/** Zone, span and live, on which every page depends; the search, the firing alerts and the reader. */
export function Header() {
  return (
    <div className={classes["header"]}>
      <Link href="/" className={classes["home"] ?? ""} aria-label="Longwatch, overview">
        <Logo />
      </Link>
      <div className={classes["scope"]}>
        <ZoneSelect />
        <SpanSelect />
        <LiveSwitch />
      </div>
      <div className={classes["search"]}>
        <SearchBox />
      </div>
      <div className={classes["end"]}>
        <Firing />
        <ThemeSwitch />
        <WhoMenu />
      </div>
    </div>
  );
}

function LiveSwitch() {
  const { isLive, setLive } = useLive();
  const isDown = useIsDown() && isLive;
  return (
    <SubtleButton
      size="xs"
      fw={400}
      className={classes["live"]}
      variant="default"
      c={isLive && !isDown ? "var(--lw-accent)" : "dimmed"}
      isPressed={isLive}
      title={
        isDown
          ? "The service does not answer. The page asks it every few seconds."
          : isLive
            ? "The numbers are read again every 15 seconds. Click to pause."
            : "The numbers are paused. Click to go on."
      }
      icon={isLive ? "pause" : "play"}
      word={<span className={classes["liveWord"]}>{isDown ? "offline" : isLive ? "live" : "paused"}</span>}
      onClick={() => setLive(!isLive)}
    />
  );
}

function Firing() {
  const { data } = useStatus();
  const isDown = useIsDown();
  const link = usePageLink();
  if (data === undefined) return null;
  const { alertsFiring: count, zones } = data;
  const copying = zones.flatMap(({ copying }) => copying ?? []);
  return (
    <Link href={link("/alerts", { state: null })} className={classes["firing"] ?? ""} data-firing={count > 0}>
      {count === 0 && isDown ? (
        "alerts not known"
      ) : count === 0 && zones.length === 0 ? (
        "nothing read yet"
      ) : count === 0 && copying.length > 0 ? (
        `copying ${describeCopied(copying)}`
      ) : count === 0 ? (
        <>
          <Icon name="check" size={14} /> <span className={classes["quiet"]}>quiet</span>
        </>
      ) : (
        <>
          <span aria-hidden="true">●</span> {count} firing
        </>
      )}
    </Link>
  );
}

/** The share of the history that is copied, of all zones that still copy. */
function describeCopied(copying: readonly { readonly hours: number; readonly done: number }[]): string {
  const sum = (name: "hours" | "done") => copying.reduce((total, one) => total + one[name], 0);
  return `${Math.floor((sum("done") / sum("hours")) * 100)} %`;
}

/** The other theme, and the function that chooses it. Whoever chooses the theme of the system follows the system again. */
function useOtherTheme() {
  const { setColorScheme } = useMantineColorScheme();
  const system = useColorScheme("dark", { getInitialValueInEffect: false });
  const other = useComputedColorScheme("dark") === "dark" ? "light" : "dark";
  return { other, choose: () => setColorScheme(other === system ? "auto" : other) } as const;
}

function ThemeSwitch() {
  const { other, choose } = useOtherTheme();
  return (
    <ActionIcon className={classes["theme"]} aria-label={`Use the ${other} theme`} onClick={choose}>
      <Icon name={other === "light" ? "sun" : "moon"} />
    </ActionIcon>
  );
}

function WhoMenu() {
  const { keyName, roles, zones, maskedAddresses, sessionId } = useSession();
  const signOut = useSignOut();
  const { other, choose } = useOtherTheme();
  const notices = useDesktopNotices();
  return (
    <Menu position="bottom-end" width={260}>
      <Menu.Target>
        <ActionIcon aria-label={`Signed in as ${keyName}`}>
          <Icon name="person" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <b className="lw-wrap">{keyName}</b>
          <br />
          {roles.join(", ")} · {zones === null ? "every zone" : `zones ${zones.join(", ")}`}
          {maskedAddresses ? " · addresses masked" : ""}
        </Menu.Label>
        <Menu.Divider />
        <Menu.Item onClick={choose}>{other === "light" ? "Light" : "Dark"} theme</Menu.Item>
        {notices.canAsk ? (
          <Menu.Item onClick={() => void notices.toggle()}>
            {notices.isOn ? "No desktop notification of new alerts" : "Desktop notification of new alerts"}
          </Menu.Item>
        ) : null}
        {sessionId === null ? null : (
          <>
            <Menu.Divider />
            <Menu.Item onClick={() => signOut.mutate({ everywhere: false })}>Sign out</Menu.Item>
            <Menu.Item onClick={() => signOut.mutate({ everywhere: true })}>Sign out everywhere</Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}

export const SEARCH_ID = "search";

/** A log id or a request id, as far as its characters say. */
const ID_LIKE = /^[0-9a-f][0-9a-f-]{7,}$/i;
const FIND_MS = 3_000;
let lastSearch = 0;

/** Returns a function that shows the events of an id, of all zones and days, and of any other text those that contain it. */
export function useSearchFor(): (text: string) => Promise<void> {
  const [path, navigate] = useLocation();
  const link = usePageLink();
  const { change } = useUrlState();
  return async (text) => {
    const q = text === "" ? null : text;
    lastSearch += 1;
    const [mine, { href }] = [lastSearch, globalThis.location];
    const found = ID_LIKE.test(text) ? await findById(text) : null;
    // The reader has searched for another text or gone to another page meanwhile.
    if (mine !== lastSearch || globalThis.location.href !== href) return;
    if (found !== null) navigate(link("/explorer", found));
    else if (path === "/explorer") change({ q });
    else navigate(link("/explorer", { q }));
  };
}

/** Returns the zone and the milliseconds of the events that have this id; null if there is none, or if the search takes too long. */
async function findById(text: string): Promise<Params | null> {
  const signal = AbortSignal.timeout(FIND_MS);
  const found = await ask("find.show", { text }, { signal }).catch(() => null);
  if (found === null || found.by === null || found.by === "path") return null;
  const times = found.items.map(({ at }) => Date.parse(at));
  const [zone, ...others] = new Set(found.items.map((item) => String(item.zone)));
  const ends = { from: String(Math.min(...times)), to: String(Math.max(...times) + 1) };
  return { zone: others.length === 0 ? (zone ?? null) : null, span: null, ...ends };
}

/** Searches the events for a text, from every page. */
function SearchBox() {
  const [path] = useLocation();
  const { params } = useUrlState();
  const search = useSearchFor();
  const isHere = path === "/explorer";
  return (
    <TextForm
      role="search"
      id={SEARCH_ID}
      aria-label="Search events for a text"
      placeholder="Search events: address, path, id ..."
      rightSection={<Kbd size="xs">/</Kbd>}
      text={isHere ? (params.get("q") ?? "") : ""}
      onSubmit={(text) => void search(text)}
    />
  );
}

/** All zones, one zone, or the zones with a label. The choice is in the address and holds on every page. */
function ZoneSelect() {
  const { all, chosen, choose } = useZones();
  const labels = [
    ...new Set(all.flatMap((zone) => Object.entries(zone.labels).map((pair) => pair.join("=")))),
  ];
  const data = [
    { value: "", label: all.length > 1 ? `all ${all.length} zones` : "all zones" },
    { group: "Zone", items: all.map((zone) => ({ value: String(zone.id), label: name(zone) })) },
    ...(labels.length === 0
      ? []
      : [{ group: "Label", items: labels.map((label) => ({ value: label, label })) }]),
  ];
  return (
    <Select
      aria-label="Zone"
      size="xs"
      w={{ sm: 150 }}
      data={data}
      value={chosen}
      allowDeselect={false}
      searchable={all.length > 8}
      maxDropdownHeight={320}
      comboboxProps={{ width: "max-content", position: "bottom-start" }}
      onChange={(value) => choose(value ?? "")}
    />
  );
}

function name(zone: Parameters<typeof zoneTitle>[0]): string {
  return zone.name === null ? zoneTitle(zone) : `${zone.name} (${zone.id})`;
}

/** The span of every number on the page: one that ends now, or one with two fixed ends. */
function SpanSelect() {
  const { name, fromMs, toMs, choose } = useSpan();
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-start" shadow="md" trapFocus>
      <Popover.Target>
        <SubtleButton
          size="xs"
          fw={400}
          title={`${formatUtc(fromMs)} to ${formatUtc(toMs)}`}
          rightSection={<Icon name="down" size={12} />}
          word={name === null ? `${formatMoment(fromMs)} – ${formatMoment(toMs)}` : `last ${name}`}
          onClick={() => setOpen(!isOpen)}
        />
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="sm" w={320} maw="calc(100vw - 48px)">
          <SegmentedControl
            fullWidth
            aria-label="Span that ends now"
            data={Object.keys(SPANS)}
            value={name ?? ""}
            onChange={(value) => {
              choose(value as SpanName);
              close();
            }}
          />
          <FixedSpan key={`${isOpen}`} onDone={close} />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

const TIME = { type: "datetime-local", step: 1 } as const;

function FixedSpan({ onDone }: { readonly onDone: () => void }) {
  const span = useSpan();
  const { values, text } = useFields(() => ({ from: toInput(span.fromMs), to: toInput(span.toMs) }));
  const [fromMs, toMs] = [parseMoment(values.from), parseMoment(values.to)];
  const problem = fromMs < toMs ? null : "The end must be after the begin.";
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (problem !== null) return;
        span.narrow(fromMs, toMs);
        onDone();
      }}
    >
      <Stack gap="xs">
        <TextInput {...TIME} label={`From, in ${isInUtc() ? "UTC" : "your time zone"}`} {...text("from")} />
        <TextInput {...TIME} label="To" {...text("to")} error={problem} />
        <div className="lw-bar">
          <Button type="submit" disabled={problem !== null}>
            Show this span
          </Button>
          <SubtleButton
            word="Twice as wide"
            onClick={() => {
              span.widen();
              onDone();
            }}
          />
          <SubtleButton word={isInUtc() ? "Times in your zone" : "Times in UTC"} onClick={switchZone} />
        </div>
      </Stack>
    </form>
  );
}

/** The value of a `datetime-local` input, which has no zone. */
function toInput(atMs: number): string {
  return formatMoment(atMs, { seconds: true }).replace(" ", "T");
}
