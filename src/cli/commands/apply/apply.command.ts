import {
  closeSync,
  existsSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  openSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Command } from 'commander';
import type { Applied, PlannedChange } from '../../../apply/apply.schema.js';
import type { ErrorDetail } from '../../../errors/service-error.js';
import { ApiError } from '../../api.js';
import { CliError } from '../../cli-error.js';
import { jsonText, type Output, type Style } from '../../output.js';
import { action, type Session } from '../../session.js';

interface ApplyOptions {
  file: string;
  dryRun?: boolean;
  exitCode?: boolean;
  prune?: boolean;
  secretsOut?: string;
}

/** Of a value on a terminal. In a file or a pipe it is whole. */
const MAX_VALUE_LENGTH = 100;
/** Exit code of a plan with changes. 1 is for errors. */
const DRIFT = 2;
const SIGNS: Record<PlannedChange['action'], readonly [sign: string, style: Style]> = {
  create: ['+', 'green'],
  update: ['~', 'yellow'],
  delete: ['-', 'red'],
};
/** What `--prune` does to an object that the file does not name. */
const ENDED: Record<string, string> = { key: ' (revoked)', team: ' (disabled)' };

/** `postern apply` */
export function applyCommand(): Command {
  return new Command('apply')
    .description(
      'change limits of all calls, groups, teams, providers, routes, prices, keys, trusts, webhooks, policies and sinks to match a file',
    )
    .requiredOption('-f, --file <file>', 'YAML or JSON file; - for standard input')
    .option('--dry-run', 'only print the plan')
    .option('--exit-code', 'with --dry-run: end with 2 if there is something to change, with 0 if not')
    .option(
      '--prune',
      'end what the lists in the file do not name: revoke keys, disable teams, remove the others',
    )
    .option('--secrets-out <file>', 'append the secrets of new keys and webhooks to this file, mode 0600')
    .option('--yes', 'do not ask')
    .option('--json', 'print the plan as JSON')
    .addHelpText(
      'after',
      `
The file names its secrets: "secret: { env: OPENAI_API_KEY }" or "secret: { file: openai.key }".
If anything is wrong, every error is printed and nothing is changed.

Examples:
  postern apply -f postern.yaml --dry-run
  postern apply -f postern.yaml --secrets-out new-keys.ndjson
  postern apply -f postern.yaml --prune --yes`,
    )
    .action(action(apply));
}

async function apply(session: Session, options: ApplyOptions): Promise<void> {
  const { api, out } = session;
  // Only here: no other command reads YAML.
  const { ApplyFile } = await import('./apply-file.js');
  const file = await ApplyFile.read(options.file);
  const { document, errors } = file.contents();
  const isDryRun = options.dryRun === true;
  const prune = options.prune === true;
  if (options.exitCode === true && !isDryRun) throw new CliError('--exit-code needs --dry-run');
  const post = async (more: object) => {
    const { secrets, ...applied } = await api.post<Applied>('apply', { document, prune, ...more });
    return { applied, secrets };
  };
  try {
    // Also with unread secrets: all errors are shown at once.
    const isTrial = isDryRun || errors.length > 0;
    const planned = isTrial || prune ? await post({ dry_run: true }) : null;
    if (errors.length > 0) throw file.failure(errors);
    if (isDryRun) {
      out.result(planned!.applied, () => planText(out, planned!.applied));
      if (options.exitCode === true && planned!.applied.plan.length > 0) process.exitCode = DRIFT;
      return;
    }
    const ended = planned?.applied.plan.filter(({ action }) => action === 'delete').length ?? 0;
    if (ended > 0) {
      out.progress(planText(out, planned!.applied));
      await session.confirm(
        `Apply this plan, which ends ${ended === 1 ? 'one object' : `${ended} objects`}?`,
      );
    }
    const secretsFile = options.secretsOut === undefined ? null : new SecretsFile(options.secretsOut);
    try {
      const { applied, secrets } = await post({
        return_secrets: secretsFile !== null,
        ...(planned !== null && { plan_id: planned.applied.plan_id }),
      });
      secretsFile?.append(secrets);
      out.result(applied, () => planText(out, applied));
      if (secrets.length > 0) out.note(`The new secrets are in ${options.secretsOut}.`);
    } finally {
      secretsFile?.close();
    }
  } catch (error) {
    const details = error instanceof ApiError ? ofDocument(error) : [];
    if (details.length === 0) throw error;
    const unread = errors.map(({ field }) => field);
    throw file.failure([...errors, ...details.filter(({ field }) => !unread.includes(field))]);
  }
}

/** The errors of the document, with the fields as the file has them; none for another error. */
function ofDocument({ details }: ApiError): ErrorDetail[] {
  const fields = details.map(({ field, message }) => ({ field: field.replace(/^document\.?/, ''), message }));
  return details.every(({ field }) => field.startsWith('document')) ? fields : [];
}

function planText(out: Output, { plan, dry_run: isDryRun }: Omit<Applied, 'secrets'>): string {
  if (plan.length === 0) return 'No changes.';
  const count = plan.length === 1 ? '1 change' : `${plan.length} changes`;
  const last = isDryRun ? `Plan: ${count}. Nothing was changed.` : `Applied ${count}.`;
  return [...plan.flatMap((change) => changeLines(out, change)), last].join('\n');
}

function changeLines(out: Output, { action, type, name, fields }: PlannedChange): string[] {
  const [sign, style] = SIGNS[action];
  const values = Object.entries(fields).flatMap(([field, { before, after }]) =>
    // What is hidden differs.
    before === null && after === 'changed'
      ? [`    ${field}: changed`]
      : differences(field, before, after).map(
          ([member, was, is]) => `    ${member}: ${shown(was)} → ${shown(is)}`,
        ),
  );
  const ended = action === 'delete' ? (ENDED[type] ?? '') : '';
  return [out.styled(`${sign} ${type} ${name}${ended}`, style), ...values];
}

type Difference = readonly [member: string, before: unknown, after: unknown];

/** The members that differ, as deep as both sides have the same shape. A list of plain values differs as a whole. */
function differences(member: string, before: unknown, after: unknown): Difference[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (isListOfObjects(before) && isListOfObjects(after)) {
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, i) => differences(`${member}[${i}]`, before[i], after[i])).flat();
  }
  if (!isObject(before) || !isObject(after)) return [[member, before, after]];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) =>
    differences(
      /^[\w-]+$/.test(name) ? `${member}.${name}` : `${member}[${JSON.stringify(name)}]`,
      before[name],
      after[name],
    ),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isListOfObjects(value: unknown): value is object[] {
  return Array.isArray(value) && value.length > 0 && value.every(isObject);
}

/** As JSON; `none` for what is on the other side only. */
function shown(value: unknown): string {
  if (value === undefined) return 'none';
  const text = jsonText(value);
  return process.stdout.isTTY && text.length > MAX_VALUE_LENGTH
    ? `${text.slice(0, MAX_VALUE_LENGTH)}…`
    : text;
}

/** Opened before the change, so that no secret is lost because it cannot be written. */
class SecretsFile {
  private readonly descriptor: number;
  private readonly isNew: boolean;
  /** Not a device or a pipe, which are left as they are. */
  private readonly isFile: boolean;

  /** @throws CliError if the file cannot be written */
  constructor(private readonly path: string) {
    try {
      this.isNew = !existsSync(path);
      this.descriptor = openSync(path, 'a', 0o600);
      this.isFile = fstatSync(this.descriptor).isFile();
      if (this.isFile) fchmodSync(this.descriptor, 0o600);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new CliError(
        `--secrets-out: ${resolve(path)} cannot be written (${code ?? 'error'}); check the path`,
      );
    }
  }

  append(secrets: Applied['secrets']): void {
    try {
      writeFileSync(this.descriptor, secrets.map((secret) => `${JSON.stringify(secret)}\n`).join(''));
      if (this.isFile) fsyncSync(this.descriptor);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new CliError(
        `everything was applied, but the new secrets could not be written to ${this.path} (${code ?? 'error'}); ` +
          `rotate these keys: ${secrets.map(({ name }) => name).join(', ')}`,
      );
    }
  }

  close(): void {
    const isUnused = this.isNew && this.isFile && fstatSync(this.descriptor).size === 0;
    closeSync(this.descriptor);
    if (isUnused) unlinkSync(this.path);
  }
}
