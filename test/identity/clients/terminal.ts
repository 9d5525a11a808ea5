import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterFile } from '../../support/after-file.js';
import { eventually, timePasses } from '../../support/eventually.js';

const run = promisify(execFile);

const running = new Set<Terminal>();

afterFile(async () => {
  await Promise.all([...running].map((terminal) => terminal.close()));
});

/** Questions to wait before a key that changed nothing is pressed again: a program may not listen yet. */
const PATIENCE = 20;

/** A terminal of 120 columns in tmux, with one program. */
export class Terminal {
  private constructor(private readonly folder: string) {}

  /** @param command program and arguments; it gets nothing of the environment of this process */
  static async open(command: string[], env: Record<string, string>, cwd: string): Promise<Terminal> {
    const terminal = new Terminal(await mkdtemp(join(tmpdir(), 'postern-terminal-')));
    running.add(terminal);
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const size = ['-x', '120', '-y', '60'];
    await terminal.tmux(
      ...['new-session', '-d', '-s', 'main', ...size, '-c', cwd, 'env', '-i', ...variables, ...command],
      ...[';', 'set-option', 'remain-on-exit', 'on'],
    );
    return terminal;
  }

  /** What it shows, with wrapped lines joined, and no other spaces than the usual one. */
  async screen(): Promise<string> {
    const { stdout } = await this.tmux('capture-pane', '-p', '-J', '-t', 'main');
    return stdout.replaceAll('\u00a0', ' ');
  }

  /** Waits until it shows a text. @throws Error with what it shows instead */
  async until(text: RegExp): Promise<RegExpExecArray> {
    let screen = '';
    return eventually(async () => {
      screen = await this.screen();
      const found = text.exec(screen);
      if (found === null) await timePasses(250, 'each question is a process');
      return found;
    }).catch((error: unknown) => {
      throw new Error(`It does not show ${text}, but:\n${screen}`, { cause: error });
    });
  }

  /** Moves in a menu, one step at a time, until the line is chosen, and confirms it. */
  async choose(line: string): Promise<void> {
    const chosen = new RegExp(`❯ (\\d\\. )?${line}`);
    await this.until(new RegExp(line));
    for (let steps = 0; steps < 20; steps++) {
      if (chosen.test(await this.screen())) return this.press('Enter');
      const before = await this.screen();
      await this.press('Down');
      for (let asked = 0; asked < PATIENCE && (await this.screen()) === before; asked++)
        await timePasses(250, 'the program draws');
    }
    throw new Error(`${line} cannot be chosen:\n${await this.screen()}`);
  }

  /** Types a line, and sends it once it is shown, until it has left the box: what follows in one piece is taken for pasted. */
  async say(line: string): Promise<void> {
    const typed = new RegExp(`─\\n❯ ${line}\\s*\\n`);
    await this.until(/─\n❯/);
    await this.tmux('send-keys', '-t', 'main', '-l', line);
    await this.until(typed);
    for (let tries = 0; tries < PATIENCE; tries++) {
      await this.press('Enter');
      for (let asked = 0; asked < PATIENCE; asked++) {
        if (!typed.test(await this.screen())) return;
        await timePasses(250, 'the program draws');
      }
    }
    throw new Error(`${line} is not sent:\n${await this.screen()}`);
  }

  async press(key: string): Promise<void> {
    await this.tmux('send-keys', '-t', 'main', key);
  }

  /** Ends its program. */
  async close(): Promise<void> {
    running.delete(this);
    await this.tmux('kill-server');
    await rm(this.folder, { recursive: true });
  }

  private tmux(...args: string[]): Promise<{ stdout: string }> {
    return run('tmux', ['-f', '/dev/null', ...args], {
      env: { PATH: process.env.PATH, LANG: 'C.UTF-8', TMUX_TMPDIR: this.folder },
    });
  }
}

/** Is there a tmux? */
export function hasTmux(): Promise<boolean> {
  return run('tmux', ['-V']).then(
    () => true,
    () => false,
  );
}
