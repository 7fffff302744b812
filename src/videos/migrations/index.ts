import { videos } from './0270-videos.ts';

export const videoMigrations = [videos];
