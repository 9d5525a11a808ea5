import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { Actor } from '../platform/actor.js';
import type { SelfService } from './self-service.js';
import type { SignInSettings } from './sign-in.js';

/** A change of what keys of people who sign in allow, as part of the transaction of the team. */
export type SignInChange = (
  manager: EntityManager,
  teamId: string,
  settings: SignInSettings,
  by: Actor,
) => Promise<void>;

/** A change of what members may create, as part of the transaction of the team. */
export type SelfServiceChange = (
  manager: EntityManager,
  teamId: string,
  settings: SelfService,
) => Promise<void>;

/** Who must know of a change of a team in its transaction. A module adds its own in a constructor. */
@Injectable()
export class TeamChanges {
  private readonly ofSignIn: SignInChange[] = [];
  private readonly ofSelfService: SelfServiceChange[] = [];

  onSignIn(change: SignInChange): void {
    this.ofSignIn.push(change);
  }

  onSelfService(change: SelfServiceChange): void {
    this.ofSelfService.push(change);
  }

  async signInChanged(...change: Parameters<SignInChange>): Promise<void> {
    for (const each of this.ofSignIn) await each(...change);
  }

  async selfServiceChanged(...change: Parameters<SelfServiceChange>): Promise<void> {
    for (const each of this.ofSelfService) await each(...change);
  }
}
