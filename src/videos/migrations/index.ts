import { videos } from './0270-videos.ts';
import { videoList } from './0271-video-list.ts';

export const videoMigrations = [videos, videoList];
