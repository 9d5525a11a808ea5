import { type DynamicModule, Module, type Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import type { Command } from 'commander';
import type { MigrationInterface } from 'typeorm';

/** What a module brings besides its providers, controllers, entities and settings. */
export interface Feature {
  /** Names the table of its migrations, `migration_<name>`, so it stays the same for ever. */
  name: string;
  /** Shown on the page System. Modules loaded by MODULES need none: it is in their package.json. */
  version?: string;
  /** In the order of the timestamps that end their names. They run after the gateway's own. */
  migrations?: readonly (new () => MigrationInterface)[];
  /** Commands of `postern`, each made when it is looked for. */
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

/** A module that MODULES names. */
export interface LoadedModule {
  name: string;
  /** Of its package.json; null for a file that only the gateway's own is above. */
  version: string | null;
}

/** A provider of the root: what MODULES named, and the features that this declares. */
export class LoadedModules {
  constructor(
    readonly modules: readonly LoadedModule[],
    readonly features: ReadonlySet<DeclaredFeature>,
  ) {}
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

/** What is in an application besides the gateway, for people: what MODULES names, then the features that it imports. */
export function modulesIn(modules: ModulesContainer): (LoadedModule & { loaded_by: 'MODULES' | 'import' })[] {
  const provided = (type: Type) =>
    [...modules.values()].map(({ providers }) => providers.get(type)?.instance);
  const loaded = provided(LoadedModules).find((one) => one instanceof LoadedModules);
  const imported = provided(DeclaredFeature)
    .filter((one) => one instanceof DeclaredFeature)
    .filter((one) => !loaded?.features.has(one));
  return [
    ...(loaded?.modules ?? []).map((one) => ({ ...one, loaded_by: 'MODULES' as const })),
    ...imported.map(({ feature: { name, version = null } }) => ({
      name,
      version,
      loaded_by: 'import' as const,
    })),
  ];
}

/** The features among these values. @throws Error if two have one name */
export function checkedFeatures(found: readonly unknown[]): Feature[] {
  const features = found.filter((one) => one instanceof DeclaredFeature).map(({ feature }) => feature);
  const names = features.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new Error(`two modules declare the feature ${twice}; rename one of them`);
  return features;
}
