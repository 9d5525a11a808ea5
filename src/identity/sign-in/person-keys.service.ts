import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { KeysService } from '../../keys/keys.service.js';
import type { LimitMembers } from '../../limit-rules/limit-rules.schema.js';
import type { Actor } from '../../platform/actor.js';
import type { SignInSettings } from '../../teams/sign-in.js';
import { TeamChanges } from '../../teams/team-changes.js';

const FIND = `
  SELECT id FROM gateway_key WHERE person_id = $1 AND team_id = $2 AND origin = 'sign_in' AND revoked_at IS NULL`;

const OF_TEAM = `
  SELECT id FROM gateway_key WHERE team_id = $1 AND origin = 'sign_in' AND revoked_at IS NULL ORDER BY id`;

const NAMES = `SELECT name FROM gateway_key WHERE team_id = $1 AND (name = $2 OR starts_with(name, $2 || ' '))`;

/** Of the names of keys. */
const MAX_NAME = 90;

/** Whose key it is. */
export interface KeyPerson {
  id: string;
  /** What the key is called, if the name is free. */
  label: string;
}

/** The keys of people who sign in: one for a person and a team. It stays when a sign-in ends, and with it its budget. */
@Injectable()
export class PersonKeys {
  constructor(
    private readonly keys: KeysService,
    changes: TeamChanges,
  ) {
    changes.onSignIn((...change) => this.apply(...change));
  }

  /**
   * The key of a person in a team, which is created at their first sign-in. Part of a transaction in which the person is
   * locked.
   *
   * @returns its ID
   */
  async keyOf(
    manager: EntityManager,
    { id: personId, label }: KeyPerson,
    teamId: string,
    settings: SignInSettings,
    by: Actor,
  ): Promise<string> {
    const [found] = await manager.query<{ id: string }[]>(FIND, [personId, teamId]);
    if (found !== undefined) return found.id;
    const { key } = await this.keys.in(manager).create(
      {
        team: teamId,
        name: await this.freeName(manager, teamId, label),
        expiresAt: null,
        personId,
        secret: false,
        idempotency: 'forward',
        ...grantOf(settings),
      },
      by,
    );
    return key.id;
  }

  /** Gives the keys that there are what the team allows now. */
  private async apply(
    manager: EntityManager,
    teamId: string,
    settings: SignInSettings,
    by: Actor,
  ): Promise<void> {
    const keys = await manager.query<{ id: string }[]>(OF_TEAM, [teamId]);
    for (const { id } of keys) await this.keys.in(manager).update(id, grantOf(settings), by);
  }

  /** Names of keys are unique in a team. */
  private async freeName(manager: EntityManager, teamId: string, label: string): Promise<string> {
    const name = [...label.trim()].slice(0, MAX_NAME).join('').trim();
    const rows = await manager.query<{ name: string }[]>(NAMES, [teamId, name]);
    const taken = new Set(rows.map((row) => row.name));
    if (!taken.has(name)) return name;
    let number = 2;
    while (taken.has(`${name} ${number}`)) number++;
    return `${name} ${number}`;
  }
}

function grantOf({ providers, endpoints, budget_usd_per_month: usd }: SignInSettings) {
  const rules = { mode: 'block', unpriced: 'reject', reservation: 'typical' } as const;
  const budgets: LimitMembers['budgets'] =
    usd === null ? [] : [{ usd, period: 'month', ...rules, alert_at: [] }];
  return { providers, endpoints, budgets };
}
