import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runHere } from '../cli/run-here.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';

export interface Change {
  action: string;
  type: string;
  name: string;
  fields: Record<string, unknown>;
}
export interface AuditEntry {
  action: string;
  subject_type: string;
  subject_name: string;
  after: object | null;
}

/** `postern apply` on a gateway, with a folder for its files. */
export class ApplyRun {
  /** The variables of the environment. */
  env: Record<string, string> = {};

  private constructor(
    readonly postern: TestGateway,
    readonly folder: string,
  ) {}

  static async start(): Promise<ApplyRun> {
    return new ApplyRun(await startTestGateway(), await mkdtemp(join(tmpdir(), 'postern-apply-')));
  }

  async stop(): Promise<void> {
    await this.postern.stop();
    await rm(this.folder, { recursive: true });
  }

  /** Applies this text. */
  async apply(text: string, args: string[] = [], env: Record<string, string> = {}) {
    await this.write('postern.yaml', text);
    const variables = { POSTERN_URL: this.postern.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
    return runHere(
      ['apply', '-f', 'postern.yaml', ...args],
      { ...variables, ...this.env, ...env },
      this.folder,
    );
  }

  async plan(text: string, args: string[] = []): Promise<Change[]> {
    const { stdout, stderr } = await this.apply(text, ['--dry-run', '--json', ...args]);
    if (stdout === '') throw new Error(stderr);
    return (JSON.parse(stdout) as { plan: Change[] }).plan;
  }

  write(name: string, text: string): Promise<void> {
    return writeFile(join(this.folder, name), text);
  }

  read(name: string): Promise<string> {
    return readFile(join(this.folder, name), 'utf8');
  }

  /** Newest first. */
  async audit(): Promise<AuditEntry[]> {
    return (await this.postern.admin<{ data: AuditEntry[] }>('GET', '/audit?limit=500')).data;
  }
}
