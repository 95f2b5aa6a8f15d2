/** The frame of every page: navigation, keys, failures and notices. */
import { AppShell, Box, CloseButton, Stack } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { Component, lazy, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { Link, useLocation, useRoute } from "wouter";
import { pause } from "#lib/waiting.ts";
import { useAlertStream } from "../api/alert-stream.ts";
import { useSession } from "../api/session.ts";
import { Moment } from "../components/facts.tsx";
import { Empty, Partial, ProblemBox } from "../components/states.tsx";
import { NAVIGATION, ROUTES } from "../routes.tsx";
import { useTabSign } from "../state/browser.ts";
import { readFilters } from "../state/filters.ts";
import { useSpan } from "../state/span.ts";
import { usePageLink, useUrlState } from "../state/url-state.ts";
import { useIsDown, useStatus, useZones } from "../state/zones.ts";
import { Icon } from "../style/icons.tsx";
import { Header, SEARCH_ID } from "./header.tsx";
import navigationClasses from "./navigation.module.css";
import shellClasses from "./shell.module.css";

/** Header and navigation around a page. On narrow screens the navigation is a bar at the bottom. */
export function Shell({ children }: { readonly children: ReactNode }) {
  useAlertStream();
  useTabSign();
  return (
    <AppShell
      header={{ height: { base: 88, sm: 48 } }}
      navbar={{ width: 152, breakpoint: "sm", collapsed: { mobile: true } }}
      footer={{ height: { base: 56, sm: 0 } }}
      transitionDuration={0}
      padding={0}
    >
      <a className={shellClasses["skip"]} href="#page">
        Skip to the page
      </a>
      <AppShell.Header className={shellClasses["header"]}>
        <Header />
      </AppShell.Header>
      <AppShell.Navbar visibleFrom="sm" className={shellClasses["navbar"]}>
        <Navigation />
      </AppShell.Navbar>
      <AppShell.Main id="page" tabIndex={-1} className={shellClasses["main"]}>
        <Unreachable />
        <Ignored />
        {children}
      </AppShell.Main>
      <AppShell.Footer hiddenFrom="sm" className={shellClasses["footer"]}>
        <TabBar />
      </AppShell.Footer>
      <PageBoundary>
        <ShellKeys />
      </PageBoundary>
    </AppShell>
  );
}

/** The pages, at the left of wide screens. */
function Navigation() {
  const { version } = useSession();
  return (
    <Stack component="nav" gap={2} h="100%" p={8} aria-label="Pages">
      <Entries className={navigationClasses["entry"]} />
      <Box mt="auto" px={10} py={8} fz={12} className="lw-dim">
        Longwatch {version}
        <br />
        <a href="/docs" target="_blank" rel="noreferrer">
          API
        </a>
      </Box>
    </Stack>
  );
}

/** The same pages, at the bottom of narrow screens. */
function TabBar() {
  return (
    <nav className={navigationClasses["tabs"]} aria-label="Pages">
      <Entries className={navigationClasses["tab"]} />
    </nav>
  );
}

function Entries({ className = "" }: { readonly className: string | undefined }) {
  return NAVIGATION.map((route) => <Entry key={route.path} {...route} className={className} />);
}

type EntryProps = (typeof NAVIGATION)[number] & { readonly className: string };

function Entry({ path, title, nav, className }: EntryProps) {
  const link = usePageLink();
  const [isExact] = useRoute(path);
  const [isBelow] = useRoute(`${path}/*`);
  const isHere = isExact || (path !== "/" && isBelow);
  const firing = useStatus().data?.alertsFiring ?? 0;
  return (
    <Link href={link(path)} className={className} aria-current={isHere ? "page" : undefined}>
      <Icon name={nav.icon} size={18} />
      <span>{title}</span>
      {path === "/alerts" && firing > 0 ? <span className={navigationClasses["count"]}>{firing}</span> : null}
    </Link>
  );
}

/** The failures of scripts and styles that could not be loaded. */
const unloaded = new Set<unknown>();
addEventListener("vite:preloadError", (event) => unloaded.add("payload" in event ? event.payload : null));

interface Props {
  /** The title of the tab; without one it stays. */
  readonly title?: string;
  readonly children: ReactNode;
}

/**
 * Keeps the header and the navigation when a page fails. A script that could not be loaded, because the service was down
 * or was updated, is loaded with the whole page once the service answers.
 */
export class PageBoundary extends Component<Props, { readonly thrown: unknown }> {
  override readonly state = { thrown: null };
  private readonly gone = new AbortController();

  static getDerivedStateFromError(thrown: unknown) {
    return { thrown };
  }

  override componentDidMount(): void {
    if (this.props.title !== undefined) document.title = `${this.props.title} · Longwatch`;
  }

  override componentDidCatch(thrown: unknown): void {
    if (unloaded.has(thrown)) void loadAgain(this.gone.signal).catch(() => undefined);
  }

  override componentWillUnmount(): void {
    this.gone.abort();
  }

  override render(): ReactNode {
    const { thrown } = this.state;
    if (thrown === null) return this.props.children;
    if (unloaded.has(thrown))
      return (
        <Empty>
          A part of this page was not loaded. The page is loaded again as soon as the service answers.
        </Empty>
      );
    return <ProblemBox thrown={thrown} onRetry={() => globalThis.location.reload()} />;
  }
}

const LOADED_AT = "longwatch-loaded-again";
const EVERY_MS = 2_000;
/** A page that fails again after it was loaded is not loaded again so soon. */
const PAUSE_MS = 60_000;

async function loadAgain(gone: AbortSignal): Promise<void> {
  const isEarly = () => Date.now() - Number(sessionStorage.getItem(LOADED_AT)) < PAUSE_MS;
  const isUp = () =>
    fetch("/livez", { signal: gone }).then(
      ({ ok }) => ok,
      () => false,
    );
  do await pause(EVERY_MS, gone);
  while (isEarly() || !(await isUp()));
  sessionStorage.setItem(LOADED_AT, String(Date.now()));
  globalThis.location.reload();
}

/** Says what of the address was not understood, instead of showing something else in silence. */
function Ignored() {
  const { params } = useUrlState();
  const span = useSpan();
  const { unknown } = useZones();
  const [closed, close] = useState("");
  const parts = [
    ...(span.ignored === null ? [] : [span.ignored]),
    ...(unknown === null ? [] : [`the zone ${unknown}`]),
    ...readFilters(params).ignored,
  ].map((part) => part.slice(0, 120));
  const text = parts.join(", ");
  if (text === "" || text === closed) return null;
  return (
    <Partial>
      The address has parts that this page does not understand. They are ignored: {text}.
      <CloseButton
        size="xs"
        aria-label="Close this note"
        onClick={() => close(text)}
        style={{ float: "right" }}
      />
    </Partial>
  );
}

/**
 * Says once, above every page, that the service does not answer, and how old the numbers are. When the service answers
 * again, all that failed meanwhile is read at once: its own turn may be minutes away.
 */
function Unreachable() {
  const client = useQueryClient();
  const { error, refetch, dataUpdatedAt } = useStatus();
  const isDown = useIsDown();
  useEffect(() => {
    if (!isDown) return undefined;
    return () =>
      void client.refetchQueries({ type: "active", predicate: ({ state }) => state.status === "error" });
  }, [client, isDown]);
  if (!isDown) return null;
  return (
    <>
      <ProblemBox thrown={error} onRetry={() => void refetch()} />
      {dataUpdatedAt === 0 ? null : (
        <p className="lw-dim" style={{ margin: "0 12px" }}>
          The last answer came at <Moment at={dataUpdatedAt} seconds />. What is shown is of that time.
        </p>
      )}
    </>
  );
}

const Palette = lazy(() => import("./palette.tsx"));
const KeyHelp = lazy(async () => ({ default: (await import("./palette.tsx")).KeyHelp }));
const SECOND_KEY_MS = 1_200;

/** Whether the reader writes, so that letters are text and no commands. */
function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** The keys that work on every page: `/`, `?`, `g` with a letter, Ctrl K. */
function ShellKeys() {
  const [shown, show] = useState<"palette" | "help" | null>(null);
  const [, navigate] = useLocation();
  const link = usePageLink();
  // Not 0: a key within a second after the page was loaded would be the second one.
  const goneAt = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        event.preventDefault();
        show("palette");
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
      const isSecond = event.timeStamp - goneAt.current < SECOND_KEY_MS;
      goneAt.current = event.key === "g" ? event.timeStamp : Number.NEGATIVE_INFINITY;
      const page = isSecond ? ROUTES.find(({ nav }) => nav?.key === event.key) : undefined;
      if (page !== undefined) navigate(link(page.path));
      else if (event.key === "?") show("help");
      else if (event.key === "/") {
        event.preventDefault();
        const box = document.getElementById(SEARCH_ID);
        if (box?.checkVisibility()) box.focus();
        else navigate(link("/explorer"));
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [link, navigate]);
  return (
    <Suspense fallback={null}>
      {shown === "palette" ? <Palette onClose={() => show(null)} onHelp={() => show("help")} /> : null}
      {shown === "help" ? <KeyHelp onClose={() => show(null)} /> : null}
    </Suspense>
  );
}
