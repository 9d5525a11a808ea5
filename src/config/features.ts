import { type DynamicModule, Module } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import type { Command } from 'commander';
import type { MigrationInterface } from 'typeorm';

/**
 * What a module brings besides its providers, controllers, entities and settings.
 *
 * @beta
 */
export interface Feature {
  /** Names the table of its migrations, `migration_<name>`, so it stays the same for ever. */
  name: string;
  /** Shown on the page System. Modules loaded by MODULES need none: it is in their package.json. */
  version?: string;
  /** In the order of the timestamps that end their names. They run after the gateway's own. */
  migrations?: readonly (new () => MigrationInterface)[];
  /** Added to `postern`. */
  commands?: readonly (() => Command)[];
  /** Types of objects whose changes `recordChange()` then accepts, and the audit log lists. */
  subjects?: readonly string[];
  /** The same for actions, besides those of the gateway (`created`, `changed`, `removed` …). */
  actions?: readonly string[];
}

/** A provider of a module's dynamic module, so that a module nobody imports declares nothing. */
export class DeclaredFeature {
  /** @throws Error for a name that cannot be that of a table */
  constructor(readonly feature: Feature) {
    if (!/^[a-z][a-z0-9_]{0,49}$/.test(feature.name))
      throw new Error(
        `${feature.name} is not a valid name of a feature; use at most 50 of a-z, 0-9 and _, a letter first`,
      );
  }
}

@Module({})
class FeatureModule {}

/** Declares a feature. `PosternModule.forFeature()` is this function, which loads nothing of the gateway. */
export function featureModule(feature: Feature): DynamicModule {
  return {
    module: FeatureModule,
    providers: [{ provide: DeclaredFeature, useValue: new DeclaredFeature(feature) }],
  };
}

/** The features that the modules of an application declare, in the order of their imports. */
export function featuresIn(modules: ModulesContainer): Feature[] {
  return checkedFeatures(
    [...modules.values()].map(({ providers }) => providers.get(DeclaredFeature)?.instance),
  );
}

/** The features among these values. @throws Error if two have one name */
export function checkedFeatures(found: readonly unknown[]): Feature[] {
  const features = found.filter((one) => one instanceof DeclaredFeature).map(({ feature }) => feature);
  const names = features.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new Error(`two modules declare the feature ${twice}; rename one of them`);
  return features;
}
