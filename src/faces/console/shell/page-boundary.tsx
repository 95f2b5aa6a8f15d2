import { Component, type ReactNode } from "react";
import { pause } from "#lib/waiting.ts";
import { Empty, ProblemBox } from "../components/states.tsx";

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
