import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/**
 * A small checkout to start from: the real scripts and the real npm, with a compiler that changes nothing and writes the number
 * of its process to builds.log for each file, so that a test takes a second and needs no registry.
 */
const COMPILER = `
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
const at = (name) => new URL('../' + name, import.meta.url);
export async function transform(code) {
  appendFileSync(at('builds.log'), process.pid + '\\n');
  if (existsSync(at('slow'))) await new Promise((go) => setTimeout(go, Number(readFileSync(at('slow'), 'utf8'))));
  if (existsSync(at('broken'))) throw new Error('src/main.ts: Expression expected');
  return { code, map: '{}' };
}
`;

export class Checkout {
  readonly folder = mkdtempSync(join(tmpdir(), 'postern-checkout-'));

  private readonly children = new Set<ChildProcessWithoutNullStreams>();

  /** @param copied a checkout that is copied with its installation and its build */
  constructor(main: string, copied?: Checkout) {
    if (copied !== undefined) {
      cpSync(copied.folder, this.folder, { recursive: true, verbatimSymlinks: true });
      return;
    }
    cpSync(join(__dirname, '../../scripts'), join(this.folder, 'scripts'), { recursive: true });
    this.write('src/start.ts', main);
    mkdirSync(join(this.folder, 'migrations'));
    this.write('compiler/index.js', COMPILER);
    const dependencies = { '@swc/core': 'file:compiler' };
    const compiler = { name: '@swc/core', version: '1.0.0', type: 'module', exports: './index.js' };
    this.write('compiler/package.json', JSON.stringify(compiler));
    const packages = {
      '': { name: 'small', version: '1.0.0', dependencies },
      compiler: { name: '@swc/core', version: '1.0.0' },
      'node_modules/@swc/core': { resolved: 'compiler', link: true },
    };
    this.write('package.json', JSON.stringify({ type: 'module', ...packages[''] }));
    this.write(
      'package-lock.json',
      JSON.stringify({ ...packages[''], lockfileVersion: 3, requires: true, packages }),
    );
  }

  write(path: string, content: string): void {
    mkdirSync(dirname(join(this.folder, path)), { recursive: true });
    writeFileSync(join(this.folder, path), content);
  }

  /** A new file in the place of one that is there. */
  replace(path: string, content: string): void {
    this.write(`${path}~`, content);
    renameSync(join(this.folder, `${path}~`), join(this.folder, path));
  }

  /** @param path `.` at the end of a test: what still runs is stopped too */
  remove(path: string): void {
    if (path === '.') for (const child of this.children) child.kill();
    rmSync(join(this.folder, path), { recursive: true, force: true });
  }

  get builds(): number {
    return this.builders.length;
  }

  /** The processes that compiled the files. */
  get builders(): string[] {
    return readFileSync(join(this.folder, 'builds.log'), 'utf8').trimEnd().split('\n');
  }

  /** Starts one of the scripts; `until` resolves when the text was printed, `ended` with everything and the code. */
  start(script = 'start.mjs', args: string[] = [], env: NodeJS.ProcessEnv = {}, through: string[] = []) {
    const [command = '', ...rest] = [...through, process.execPath, join('scripts', script), ...args];
    const child: ChildProcessWithoutNullStreams = spawn(command, rest, {
      cwd: this.folder,
      env: { ...process.env, npm_lifecycle_event: undefined, ...env },
    });
    this.children.add(child);
    child.once('close', () => this.children.delete(child));
    child.stdin.end();
    const seen = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk: Buffer) => (seen.stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (seen.stderr += chunk.toString()));
    const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
      child.once('close', (code) => resolve({ code, ...seen }));
    });
    const until = (text: string) =>
      new Promise<void>((resolve, reject) => {
        const look = () => seen.stdout.includes(text) && resolve();
        child.stdout.on('data', look);
        child.once('close', () => reject(new Error(`ended without ${text}: ${seen.stdout}${seen.stderr}`)));
        look();
      });
    return { child, ended, until, printed: () => seen.stdout, complained: () => seen.stderr };
  }
}
