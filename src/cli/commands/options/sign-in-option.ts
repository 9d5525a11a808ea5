import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { ClaudeCodeSettings } from '../../../teams/claude-code.js';
import type { SignInSettings } from '../../../teams/sign-in.js';
import { CliError } from '../../cli-error.js';
import type { Cell } from '../../table.js';

export interface SignInOption {
  signIn?: string;
  claudeCode?: string;
}

const RULE =
  /^(?<days>\d{1,9})d(?:\/(?<minutes>\d{1,9})m)?(?::(?<usd>\d+(?:\.\d+)?)\/month)?(?::(?<names>[\w-]+(?:,[\w-]+)*))?$/;

export function addSignInOption(command: Command): Command {
  return command
    .option(
      '--sign-in <rule>',
      'lets members sign in from a client, and after how many days they must again: 30d, 30d/60m (tokens of 60 minutes), ' +
        '30d:50/month (each with a budget of 50 USD a month), 30d:anthropic (for this provider only; also after a budget), or none',
    )
    .option(
      '--claude-code <file>',
      'JSON file with the settings that Claude Code gets after a sign-in, or none',
    );
}

/** The options that were given, as fields of the admin API. */
export function signInOf({ signIn: text, claudeCode: file }: SignInOption): object {
  return {
    ...(text !== undefined && { sign_in: text === 'none' ? null : ruleOf(text) }),
    ...(file !== undefined && { claude_code: file === 'none' ? null : readJson(file) }),
  };
}

function ruleOf(text: string): object {
  const { days, minutes, usd, names } = RULE.exec(text)?.groups ?? {};
  if (days === undefined) {
    throw new CliError(
      `--sign-in must be days such as 30d, 30d/60m, 30d:50/month or 30d:50/month:anthropic, or none; ${JSON.stringify(text)} is not`,
    );
  }
  return {
    days: Number(days),
    ...(minutes !== undefined && { token_minutes: Number(minutes) }),
    budget_usd_per_month: usd ?? null,
    providers: names?.split(',') ?? null,
  };
}

function readJson(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CliError(`--claude-code: ${file} cannot be read (${code ?? 'error'})`, { cause: error });
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CliError(`--claude-code: ${file} is not JSON`, { cause: error });
  }
}

/** In the form of the options; no line for what is not set. */
export function signInLines(
  rule: SignInSettings | null,
  claudeCode: ClaudeCodeSettings | null,
): (readonly [string, Cell])[] {
  const lines: (readonly [string, Cell])[] = [];
  if (rule !== null) {
    const { days, token_minutes: minutes, budget_usd_per_month: usd, providers, endpoints } = rule;
    const parts = [
      `${days}d/${minutes}m`,
      ...(usd === null ? [] : [`${usd}/month`]),
      ...(providers === null ? [] : [providers.join(',')]),
    ];
    lines.push(['sign-in', parts.join(':') + (endpoints === 'inference' ? '' : `, ${endpoints} endpoints`)]);
  }
  if (claudeCode !== null) lines.push(['Claude Code', JSON.stringify(claudeCode)]);
  return lines;
}
