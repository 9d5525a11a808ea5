import type { Command } from 'commander';
import type { SelfService } from '../../../teams/self-service.js';
import { CliError } from '../../cli-error.js';
import type { Cell } from '../../table.js';

export interface SelfServiceOption {
  selfService?: string;
}

const RULE =
  /^(?<keys>\d{1,9})\/(?<days>\d{1,9})d(?::(?<usd>\d+(?:\.\d+)?)\/month)?(?::sign-in\/(?<within>\d{1,9})d)?(?::(?<names>[\w-]+(?:,[\w-]+)*))?$/;

export function addSelfServiceOption(command: Command): Command {
  return command.option(
    '--self-service <rule>',
    'how many keys each member may create for themselves, and their lifetime: 3/90d, 3/90d:50/month (each with a budget ' +
      'of 50 USD a month), 3/90d:sign-in/14d (each works for 14 days after its owner last signed in), 3/90d:openai,azure (for ' +
      'these providers only), 3/90d:50/month:sign-in/14d:openai, or none',
  );
}

/** The option, if it was given, as a field of the admin API. */
export function selfServiceOf({ selfService: text }: SelfServiceOption): object {
  if (text === undefined) return {};
  if (text === 'none') return { self_service: null };
  const { keys, days, usd, within, names } = RULE.exec(text)?.groups ?? {};
  if (keys === undefined) {
    throw new CliError(
      `--self-service must be keys and days such as 3/90d, 3/90d:50/month or 3/90d:50/month:sign-in/14d:openai, or none; ${JSON.stringify(text)} is not`,
    );
  }
  const rule: SelfService = {
    keys_per_user: Number(keys),
    max_days: Number(days),
    budget_usd_per_month: usd ?? null,
    providers: names?.split(',') ?? null,
    sign_in_within_days: within === undefined ? null : Number(within),
  };
  return { self_service: rule };
}

/** In the form of the option; no line if members may create none. */
export function selfServiceLines(rule: SelfService | null): (readonly [string, Cell])[] {
  if (rule === null) return [];
  const { keys_per_user: keys, max_days: days, budget_usd_per_month: usd, providers } = rule;
  const { sign_in_within_days: within } = rule;
  const parts = [
    `${keys}/${days}d`,
    ...(usd === null ? [] : [`${usd}/month`]),
    ...(within === null ? [] : [`sign-in/${within}d`]),
    ...(providers === null ? [] : [providers.join(',')]),
  ];
  return [['keys of members', parts.join(':')]];
}
