import type { Command } from 'commander';
import { Api } from './api.js';
import { connect, connectRunning, mustBeLocal } from './connect.js';
import { globalOptionsOf } from './global-options.js';
import { Output } from './output.js';
import { confirm } from './prompt.js';

interface SessionOptions {
  json?: boolean;
  /** `json` is the same as --json. */
  format?: string;
  wide?: boolean;
  tz?: string;
}

/** What the action of a command works with. */
export class Session {
  readonly api: Api;
  readonly out: Output;
  /** The API of a gateway that runs, and never that of this process on its database. */
  readonly running: Api;
  private readonly url: string | undefined;

  constructor(private readonly command: Command) {
    const { url, colour, quiet, timeZone } = globalOptionsOf(command);
    const { json, format, wide, tz } = command.opts<SessionOptions>();
    this.url = url;
    this.api = new Api(() => connect(url), tz ?? timeZone);
    this.running = new Api(() => connectRunning(url), tz ?? timeZone);
    const isTerminal = process.stdout.isTTY && process.stdout.hasColors();
    const { rawArgs: args } = rootOf(command) as unknown as { rawArgs: readonly string[] };
    this.out = new Output({
      json: json === true || format === 'json',
      wide,
      quiet,
      colour: colour && isTerminal,
      args,
    });
  }

  /** Asks before something that cannot be undone, unless --yes is given. @throws CliError if the response is not yes */
  async confirm(question: string): Promise<void> {
    if (!this.command.opts<{ yes?: boolean }>().yes) await confirm(question);
  }

  /** @param needs what the command works on @throws CliError with a URL */
  mustBeLocal(needs: string): void {
    mustBeLocal(this.url, needs);
  }
}

/**
 * The action of a command.
 *
 *     new Command('quota').argument('<team>').action(action<Options>(async ({ api, out }, options, team) => { … }))
 */
export function action<Options>(
  work: (session: Session, options: Options, ...args: string[]) => Promise<void>,
): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    const command = given.at(-1) as Command;
    const session = new Session(command);
    try {
      await work(session, command.opts<object>() as Options, ...(command.processedArgs as string[]));
    } finally {
      await session.api.close();
      await session.running.close();
    }
  };
}

function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent);
}
