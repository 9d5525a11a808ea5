import { Command } from 'commander';
import { path } from '../../../src/cli/api.js';
import { action } from '../../../src/cli/session.js';
import type { TeamView } from '../../../src/teams/teams.schema.js';
import type { QuotaView } from './quotas.schema.js';

interface Options {
  tokensPerDay: string;
}

/** The commands of this module. */
export function quotasCommand(): Command {
  const quotas = new Command('quotas').description('how many tokens a team may use a day');
  quotas
    .command('set')
    .description('set the quota of a team')
    .argument('<team>', 'name or ID of the team')
    .requiredOption('--tokens-per-day <n>', 'prompt and completion tokens, added up')
    .option('--json', 'print the quota as JSON')
    .action(
      action<Options>(async ({ api, out }, { tokensPerDay }, team) => {
        const { id, name } = await api.get<TeamView>(path('teams', team));
        const body = { tokens_per_day: Number(tokensPerDay) };
        const quota = await api.put<QuotaView>(`quotas/${id}`, body);
        out.result(quota, () => `Team ${name} may use ${quota.tokens_per_day} tokens a day.`);
      }),
    );
  return quotas;
}
