"""What people have on disk: folders of images, CSV files of labels, Pl@ntNet-300K, CIFAR, MNIST."""
